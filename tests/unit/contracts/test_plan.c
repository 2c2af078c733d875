/* SPDX-License-Identifier: Apache-2.0 */
/* Two versions of one small record: what is matched, what is written by the older, what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "common/contracts/codec.h"
#include "common/contracts/plan.h"
#include "common/contracts/read.h"
#include "common/contracts/write.h"

#define ARENA_BYTES ((size_t)4 * 1024 * 1024)

enum color { RED, GREEN, BLUE, OTHER };

struct thing {
    struct pay_str name;
    enum color color;
    int64_t weight; /* 0: absent. */
    int count;      /* 7 where the writer's schema lacks it. */
};

static const struct pay_bind fields[] = {
    PAY_TEXT("name", struct thing, name, 1, 8),
    PAY_ENUM("color", struct thing, color, OTHER),
    PAY_LONG("weight", struct thing, weight, 0, INT64_MAX, PAY_OPTIONAL),
    PAY_INT("count", struct thing, count, 0, 100, .may_lack = true, .by_default = 7),
};
static const struct pay_bind_record bind_thing = {fields, PAY_FIELD_COUNT(fields)};

#define RECORD(fields_) "{\"type\":\"record\",\"name\":\"Thing\",\"fields\":[" fields_ "]}"
#define FIELD(name_, type_) "{\"name\":\"" name_ "\",\"type\":" type_ "}"
#define NAME FIELD("name", "\"string\"")
#define COLOR(symbols_) \
    FIELD("color", "{\"type\":\"enum\",\"name\":\"Color\",\"symbols\":[" symbols_ "]}")
#define COLORS COLOR("\"RED\",\"GREEN\",\"BLUE\",\"OTHER\"")
#define WEIGHT FIELD("weight", "[\"null\",\"long\"]")
#define COUNT FIELD("count", "\"int\"")
#define GONE FIELD("gone", "[\"null\",\"string\"]")
#define FEW_COLORS COLOR("\"GREEN\",\"OTHER\",\"RED\"")
#define LIST FIELD("list", "{\"type\":\"array\",\"items\":\"int\"}")
#define MAP FIELD("map", "{\"type\":\"map\",\"values\":\"long\"}")
#define OLDER RECORD(GONE "," FEW_COLORS "," LIST "," NAME "," MAP)
#define CURRENT RECORD(NAME "," COLORS "," WEIGHT "," COUNT)

struct fixture {
    struct pay_arena *arena;
    avro_schema_t current;
    avro_schema_t writer;
    avro_writer_t out;
    uint8_t bytes[256];
    size_t len;
    struct pay_plan plan;
    struct pay_err err;
};

static int set_up(void **state)
{
    struct fixture *f = test_calloc(1, sizeof *f);
    f->arena = pay_arena_new(ARENA_BYTES);
    f->out = avro_writer_memory((const char *)f->bytes, sizeof f->bytes);
    *state = f;
    return avro_schema_from_json_length(CURRENT, sizeof CURRENT - 1, &f->current);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    (void)avro_schema_decref(f->current);
    if (f->writer != NULL) {
        (void)avro_schema_decref(f->writer);
    }
    avro_writer_free(f->out);
    f->arena = pay_arena_free(f->arena);
    test_free(f);
    return 0;
}

static enum pay_status plan(struct fixture *f, const char *json)
{
    if (f->writer != NULL) {
        (void)avro_schema_decref(f->writer);
        f->writer = NULL;
    }
    assert_int_equal(avro_schema_from_json_length(json, strlen(json), &f->writer), 0);
    return pay_plan_make(f->arena, &bind_thing, f->writer, f->current, &f->plan, &f->err);
}

static enum pay_status put(struct fixture *f, const struct thing *thing)
{
    const struct pay_check check = {.op = "test", .err = &f->err};
    enum pay_status status = pay_write_measure(&check, f->plan.root, thing, &f->len);
    if (status == PAY_OK) {
        assert_true(f->len <= sizeof f->bytes);
        status = pay_write_record(&check, f->plan.root, thing, f->out, f->bytes, f->len);
    }
    return status;
}

static struct thing get(struct fixture *f)
{
    const struct pay_check check = {.op = "test", .err = &f->err};
    struct thing thing = {0};
    assert_int_equal(pay_read_record(&check, f->plan.root, (struct pay_bytes){f->bytes, f->len},
                                     f->arena, &thing),
                     PAY_OK);
    return thing;
}

static const struct thing sample = {{"lamp", 4}, BLUE, 12, 3};

static void test_written_by_an_older_schema(void **state)
{
    struct fixture *f = *state;

    /* Another order, no weight and count, no BLUE, and three fields that are gone since. */
    assert_int_equal(plan(f, OLDER), PAY_OK);
    assert_true(f->plan.writable);
    assert_int_equal(put(f, &sample), PAY_OK);
    static const uint8_t expected[] = {0, 2, 0, 8, 'l', 'a', 'm', 'p', 0};
    assert_int_equal(f->len, sizeof expected);
    assert_memory_equal(f->bytes, expected, sizeof expected);
    const struct thing back = get(f);
    assert_string_equal(back.name.ptr, "lamp");
    assert_int_equal(back.color, OTHER);
    assert_int_equal(back.weight, 0);
    assert_int_equal(back.count, 7);
}

static void test_symbols_by_name(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, RECORD(COLOR("\"PINK\",\"BLUE\",\"RED\"") "," NAME)), PAY_OK);
    assert_int_equal(put(f, &sample), PAY_OK);
    assert_int_equal(f->bytes[0], 2);
    assert_int_equal(get(f).color, BLUE);
    f->bytes[0] = 0; /* PINK */
    assert_int_equal(get(f).color, OTHER);
    /* GREEN cannot be said in that schema, not even by a default. */
    assert_int_equal(put(f, &(struct thing){{"lamp", 4}, GREEN, 0, 0}), PAY_REJECT);
    assert_int_equal(f->err.code, PAY_CODEC_MALFORMED);
}

static void test_a_needed_field_that_is_gone_cannot_be_written(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, RECORD(NAME "," COLORS "," FIELD("gone", "\"string\""))), PAY_OK);
    assert_false(f->plan.writable);
    assert_int_equal(plan(f, RECORD(NAME "," COLORS)), PAY_OK);
    assert_true(f->plan.writable);
}

static void test_types(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan(f, RECORD(NAME "," COLORS "," FIELD("weight", "\"int\""))), PAY_OK);
    assert_int_equal(put(f, &sample), PAY_OK);
    assert_int_equal(get(f).weight, 12);
    assert_int_equal(put(f, &(struct thing){{"lamp", 4}, RED, 0, 0}), PAY_OK);
    assert_int_equal(put(f, &(struct thing){{"lamp", 4}, RED, INT32_MAX, 0}), PAY_OK);
    assert_int_equal(put(f, &(struct thing){{"lamp", 4}, RED, INT64_C(1) << 31, 0}), PAY_REJECT);
    assert_int_equal(plan(f, RECORD(NAME "," COLORS "," FIELD("count", "\"long\""))), PAY_REJECT);
    assert_int_equal(plan(f, RECORD(FIELD("name", "\"bytes\"") "," COLORS)), PAY_REJECT);
    assert_int_equal(plan(f, RECORD(NAME "," FIELD("color", "\"string\""))), PAY_REJECT);
    assert_int_equal(plan(f, RECORD(COLORS)), PAY_REJECT);
}

static void test_an_unbound_field_of_the_current_schema_is_a_bug(void **state)
{
    struct fixture *f = *state;
    const char *json = RECORD(NAME "," COLORS "," WEIGHT "," COUNT "," FIELD("more", "\"int\""));

    assert_int_equal(avro_schema_from_json_length(json, strlen(json), &f->writer), 0);
    assert_int_equal(pay_plan_make(f->arena, &bind_thing, f->writer, f->writer, &f->plan, &f->err),
                     PAY_REJECT);
    json = RECORD(NAME "," COLORS "," WEIGHT);
    (void)avro_schema_decref(f->writer);
    assert_int_equal(avro_schema_from_json_length(json, strlen(json), &f->writer), 0);
    assert_int_equal(pay_plan_make(f->arena, &bind_thing, f->writer, f->writer, &f->plan, &f->err),
                     PAY_REJECT);
}

/* Arrays of arrays ... to that depth. */
static enum pay_status plan_nested(struct fixture *f, int depth)
{
    char json[4096];
    size_t at = 0;

    at += (size_t)snprintf(json, sizeof json,
                           "{\"type\":\"record\",\"name\":\"Thing\",\"fields\":[" NAME "," COLORS
                           ",{\"name\":\"deep\",\"type\":");
    for (int i = 0; i < depth; i++) {
        at += (size_t)snprintf(json + at, sizeof json - at, "{\"type\":\"array\",\"items\":");
    }
    at += (size_t)snprintf(json + at, sizeof json - at, "\"int\"");
    for (int i = 0; i < depth; i++) {
        at += (size_t)snprintf(json + at, sizeof json - at, "}");
    }
    (void)snprintf(json + at, sizeof json - at, "}]}");
    return plan(f, json);
}

static void test_nesting_ends(void **state)
{
    struct fixture *f = *state;

    /* The record and the int take two. */
    assert_int_equal(plan_nested(f, PAY_PLAN_DEPTH_MAX - 2), PAY_OK);
    assert_int_equal(put(f, &sample), PAY_OK);
    assert_int_equal(get(f).color, BLUE);
    assert_int_equal(plan_nested(f, PAY_PLAN_DEPTH_MAX - 1), PAY_REJECT);
}

/* Each record names the former twice: small as text, 2^n as a tree. */
static enum pay_status plan_doubled(struct fixture *f, int levels)
{
    char json[8192];
    size_t at = 0;

    at += (size_t)snprintf(json, sizeof json,
                           "{\"type\":\"record\",\"name\":\"Thing\",\"fields\":[" NAME "," COLORS
                           "," FIELD("r0", "\"int\""));
    for (int i = 0; i < levels; i++) {
        char former[16] = "\"int\"";
        if (i > 0) {
            (void)snprintf(former, sizeof former, "\"R%d\"", i - 1);
        }
        at += (size_t)snprintf(
            json + at, sizeof json - at,
            ",{\"name\":\"f%d\",\"type\":{\"type\":\"record\",\"name\":\"R%d\","
            "\"fields\":[{\"name\":\"a\",\"type\":%s},{\"name\":\"b\",\"type\":%s}]}}",
            i, i, former, former);
    }
    (void)snprintf(json + at, sizeof json - at, "]}");
    return plan(f, json);
}

static void test_size_ends(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(plan_doubled(f, 8), PAY_OK);
    assert_int_equal(plan_doubled(f, 18), PAY_REJECT);
    assert_true(pay_arena_used(f->arena) < ARENA_BYTES / 2);
}

#define TEST(name_) cmocka_unit_test_setup_teardown(name_, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_written_by_an_older_schema),
        TEST(test_symbols_by_name),
        TEST(test_a_needed_field_that_is_gone_cannot_be_written),
        TEST(test_types),
        TEST(test_an_unbound_field_of_the_current_schema_is_a_bug),
        TEST(test_nesting_ends),
        TEST(test_size_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
