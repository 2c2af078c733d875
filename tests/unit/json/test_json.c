/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: what others wrote is read exactly or refused with a class; nothing is rounded or guessed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/buf.h"
#include "common/json/json.h"

#include <string.h>

#define MAX_BYTES 100000u

static struct {
    struct pay_json *doc;
    struct pay_err err;
    struct pay_buf text;
} fixture;

static int make(void **state)
{
    (void)state;
    memset(&fixture, 0, sizeof fixture);
    fixture.text = pay_buf_make(MAX_BYTES);
    return 0;
}

static int drop(void **state)
{
    (void)state;
    fixture.doc = pay_json_free(fixture.doc);
    pay_buf_free(&fixture.text);
    return 0;
}

static enum pay_status parse_bytes(const char *text, size_t len)
{
    fixture.doc = pay_json_free(fixture.doc);
    return pay_json_parse((struct pay_bytes){(const uint8_t *)text, len}, MAX_BYTES, &fixture.doc,
                          &fixture.err);
}

static const struct pay_json_value *parsed(const char *text)
{
    assert_int_equal(parse_bytes(text, strlen(text)), PAY_OK);
    return pay_json_root(fixture.doc);
}

#define REFUSED(text_, error_) {(text_), sizeof(text_) - 1, PAY_JSON_ERROR_##error_}
static const struct {
    const char *text;
    size_t len;
    enum pay_json_error error;
} refusals[] = {
    REFUSED("", SYNTAX),
    REFUSED(" ", SYNTAX),
    REFUSED("{", SYNTAX),
    REFUSED("[1,]", SYNTAX),
    REFUSED("{\"a\":1,}", SYNTAX),
    REFUSED("{} {}", SYNTAX),
    REFUSED("{}x", SYNTAX),
    REFUSED("nul", SYNTAX),
    REFUSED("NaN", SYNTAX),
    REFUSED("Infinity", SYNTAX),
    REFUSED("01", SYNTAX),
    REFUSED("+1", SYNTAX),
    REFUSED(".5", SYNTAX),
    REFUSED("1.", SYNTAX),
    REFUSED("0x10", SYNTAX),
    REFUSED("'a'", SYNTAX),
    REFUSED("\"a\nb\"", SYNTAX),
    REFUSED("\"\\x41\"", SYNTAX),
    REFUSED("\"\\ud800\"", SYNTAX), /* Half a surrogate pair. */
    REFUSED("\"\\ude00\"", SYNTAX),
    REFUSED("// c\n1", SYNTAX),
    REFUSED("]", SYNTAX),
    REFUSED("{\"a\":1,\"a\":1}", DUPLICATE),
    REFUSED("{\"a\":1,\"b\":{\"c\":1,\"c\":2}}", DUPLICATE),
    REFUSED("{\"a\":1,\"\\u0061\":2}", DUPLICATE), /* The same name, written in another way. */
    REFUSED("\"\xff\"", UTF8),
    REFUSED("\"\xc0\x80\"", UTF8),
    REFUSED("\"\xed\xa0\x80\"", UTF8),
    REFUSED("{\"\xe2\x82\":1}", UTF8),
    REFUSED("\"a\\u0000b\"", NUL),
    REFUSED("{\"a\\u0000\":1}", NUL),
    REFUSED("9223372036854775808", RANGE),
    REFUSED("-9223372036854775809", RANGE),
    REFUSED("123456789012345678901234567890", RANGE),
    REFUSED("{\"amount\":18446744073709551616}", RANGE),
    REFUSED("1e999", RANGE),
    REFUSED("\"a\0b\"", SYNTAX), /* A NUL byte itself is a control character. */
    REFUSED("{}\0", SYNTAX),
    REFUSED("1 2", SYNTAX), /* A blank between two values is no blank beside a mark. */
    REFUSED("[1 2]", SYNTAX),
    REFUSED("[1\n\t2]", SYNTAX),
    REFUSED("[\"a\" \"b\"]", SYNTAX),
    REFUSED("[tr ue]", SYNTAX),
    REFUSED("[- 1]", SYNTAX),
    REFUSED("{\"a\" 1}", SYNTAX),
};

static void every_refusal_has_its_class(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        print_message("%s\n", refusals[i].text);
        assert_int_equal(parse_bytes(refusals[i].text, refusals[i].len), PAY_REJECT);
        assert_int_equal(fixture.err.code, refusals[i].error);
        assert_int_equal(fixture.err.status, PAY_REJECT);
        assert_non_null(strstr(fixture.err.text, pay_json_error_name(refusals[i].error)));
        assert_null(fixture.doc);
    }
}

static void blanks_count_in_strings_and_nowhere_else(void **state)
{
    (void)state;
    const struct pay_json_value *root =
        parsed(" {\n  \"a b\" : [ 1 ,\t\"x  , [ \\\" { \\\\\" , true ] ,\r\n \"c\" : { } }\n ");
    const struct pay_json_value *list = pay_json_member(root, "a b");
    int64_t one = 0;
    assert_int_equal(pay_json_count(list), 3);
    assert_true(pay_json_int(pay_json_item(list, 0), &one) && one == 1);
    assert_string_equal(pay_json_str(pay_json_item(list, 1)).ptr, "x  , [ \" { \\");
    assert_int_equal(pay_json_kind(pay_json_member(root, "c")), PAY_JSON_OBJECT);
    /* Where it is wrong is said of the text as it came. */
    static const char wrong[] = "{\n  \"a\" : 1,\n    x\n}";
    assert_int_equal(parse_bytes(wrong, sizeof wrong - 1), PAY_REJECT);
    assert_string_equal(fixture.err.text, "no JSON at line 3 column 5");
}

static void absent_bytes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(parse_bytes(NULL, 0), PAY_REJECT);
}

static void an_error_text_quotes_no_payload(void **state)
{
    (void)state;
    static const char text[] = "{\"iban\":\"DE02120300000000202051\" x}";
    assert_int_equal(parse_bytes(text, sizeof text - 1), PAY_REJECT);
    assert_null(strstr(fixture.err.text, "DE02"));
    assert_null(strstr(fixture.err.text, "iban"));
    assert_string_equal(fixture.err.text, "no JSON at line 1 column 34");
}

static void the_number_of_bytes_is_bounded(void **state)
{
    (void)state;
    const struct pay_bytes five = {(const uint8_t *)"[1,2]", 5};
    assert_int_equal(pay_json_parse(five, 4, &fixture.doc, &fixture.err), PAY_REJECT);
    assert_int_equal(fixture.err.code, PAY_JSON_ERROR_TOO_LONG);
    assert_int_equal(pay_json_parse(five, 5, &fixture.doc, &fixture.err), PAY_OK);
}

/* open and close around "1", levels times. */
static enum pay_status parse_nested(const char *open, const char *close, size_t levels)
{
    pay_buf_reset(&fixture.text);
    for (size_t i = 0; i < levels; i++) {
        pay_buf_add_c(&fixture.text, open);
    }
    pay_buf_add_c(&fixture.text, "1");
    for (size_t i = 0; i < levels; i++) {
        pay_buf_add_c(&fixture.text, close);
    }
    return parse_bytes(pay_buf_str(&fixture.text).ptr, fixture.text.len);
}

static void the_depth_is_bounded(void **state)
{
    (void)state;
    static const char *const forms[][2] = {{"[", "]"}, {"{\"a\":", "}"}, {"[ \"[[\",", "]"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        assert_int_equal(parse_nested(forms[i][0], forms[i][1], PAY_JSON_DEPTH_MAX), PAY_OK);
        assert_int_equal(parse_nested(forms[i][0], forms[i][1], PAY_JSON_DEPTH_MAX + 1),
                         PAY_REJECT);
        assert_int_equal(fixture.err.code, PAY_JSON_ERROR_TOO_DEEP);
    }
    assert_int_equal(parse_nested("[", "]", 20000), PAY_REJECT);
    assert_int_equal(fixture.err.code, PAY_JSON_ERROR_TOO_DEEP);
}

static void brackets_side_by_side_or_in_strings_are_no_depth(void **state)
{
    (void)state;
    static const char many[] = "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[";

    pay_buf_printf(&fixture.text, "[\"\\\\\",\"%s\\\"%s\"", many, many);
    for (int i = 0; i < 100; i++) {
        pay_buf_add_c(&fixture.text, ",[{}]");
    }
    pay_buf_add_c(&fixture.text, "]");
    assert_int_equal(parse_bytes(pay_buf_str(&fixture.text).ptr, fixture.text.len), PAY_OK);
    assert_int_equal(pay_json_count(pay_json_root(fixture.doc)), 102);
}

static const struct {
    const char *text;
    enum pay_json_kind kind;
    int64_t number;
} numbers[] = {
    {"0", PAY_JSON_INT, 0},
    {"-0", PAY_JSON_INT, 0},
    {"1099", PAY_JSON_INT, 1099},
    {"9223372036854775807", PAY_JSON_INT, INT64_MAX},
    {"-9223372036854775808", PAY_JSON_INT, INT64_MIN},
    {"9007199254740993", PAY_JSON_INT, INT64_C(9007199254740993)}, /* No double holds it. */
    {"1.0", PAY_JSON_NUMBER, 0},
    {"1e3", PAY_JSON_NUMBER, 0},
    {"1E0", PAY_JSON_NUMBER, 0},
    {"10.99", PAY_JSON_NUMBER, 0},
    {"-0.0", PAY_JSON_NUMBER, 0},
    {"\"1\"", PAY_JSON_STRING, 0},
    {"true", PAY_JSON_BOOL, 0},
    {"null", PAY_JSON_NULL, 0},
    {"[1]", PAY_JSON_ARRAY, 0},
    {"{\"a\":1}", PAY_JSON_OBJECT, 0},
};

static void only_integers_are_read_as_integers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct pay_json_value *value = parsed(numbers[i].text);
        const bool is_int = numbers[i].kind == PAY_JSON_INT;
        int64_t got = -77;

        print_message("%s\n", numbers[i].text);
        assert_int_equal(pay_json_kind(value), numbers[i].kind);
        assert_int_equal(pay_json_int(value, &got), is_int);
        assert_true(got == (is_int ? numbers[i].number : -77));
    }
}

static void accessors_of_another_kind_give_nothing(void **state)
{
    (void)state;
    const struct pay_json_value *root = parsed("{\"s\":\"x\",\"t\":true,\"f\":false,\"n\":null}");
    bool truth = false;

    assert_true(pay_json_bool(pay_json_member(root, "t"), &truth));
    assert_true(truth);
    assert_true(pay_json_bool(pay_json_member(root, "f"), &truth));
    assert_false(truth);
    assert_false(pay_json_bool(pay_json_member(root, "s"), &truth));
    assert_false(pay_json_bool(pay_json_member(root, "n"), &truth));
    assert_null(pay_json_str(pay_json_member(root, "t")).ptr);
    assert_null(pay_json_str(pay_json_member(root, "n")).ptr);
    assert_null(pay_json_member(pay_json_member(root, "s"), "x"));
    assert_null(pay_json_item(root, 0));
    assert_int_equal(pay_json_count(pay_json_member(root, "s")), 0);
}

static void null_differs_from_absent(void **state)
{
    (void)state;
    const struct pay_json_value *root = parsed("{\"n\":null}");
    int64_t number = 0;
    bool truth = false;

    assert_true(pay_json_is_null(pay_json_member(root, "n")));
    assert_false(pay_json_is_null(pay_json_member(root, "m")));
    assert_int_equal(pay_json_kind(pay_json_member(root, "m")), PAY_JSON_ABSENT);
    assert_null(pay_json_member(NULL, "m"));
    assert_null(pay_json_item(NULL, 0));
    assert_null(pay_json_path(NULL, "a.b"));
    assert_null(pay_json_str(NULL).ptr);
    assert_false(pay_json_int(NULL, &number));
    assert_false(pay_json_bool(NULL, &truth));
    assert_int_equal(pay_json_count(NULL), 0);
}

static void paths_walk_members_and_items(void **state)
{
    (void)state;
    const struct pay_json_value *root =
        parsed("{\"data\":{\"object\":{\"id\":\"pi_1\",\"list\":[10,[20,30]],\"0\":\"zero\"}}}");
    int64_t number = 0;

    assert_string_equal(pay_json_str(pay_json_path(root, "data.object.id")).ptr, "pi_1");
    assert_true(pay_json_int(pay_json_path(root, "data.object.list.1.0"), &number));
    assert_int_equal(number, 20);
    assert_string_equal(pay_json_str(pay_json_path(root, "data.object.0")).ptr, "zero");
    assert_ptr_equal(pay_json_path(root, ""), root);
    assert_null(pay_json_path(root, "data.nothing.id"));
    assert_null(pay_json_path(root, "data.object.id.x"));
    assert_null(pay_json_path(root, "data.object.list.2"));
    assert_null(pay_json_path(root, "data.object.list.-1"));
    assert_null(pay_json_path(root, "data.object.list.x"));
}

static void strings_are_whole_and_terminated(void **state)
{
    (void)state;
    const struct pay_str text =
        pay_json_str(parsed("\"a\\\"\\\\\\/\\n\\u00e9\\ud83d\\ude00\xe2\x82\xac\""));
    assert_string_equal(text.ptr, "a\"\\/\n\xc3\xa9\xf0\x9f\x98\x80\xe2\x82\xac");
    assert_int_equal(text.len, strlen(text.ptr));
    const struct pay_str empty = pay_json_str(parsed("\"\""));
    assert_non_null(empty.ptr);
    assert_int_equal(empty.len, 0);
}

static void members_come_in_the_order_of_the_text(void **state)
{
    (void)state;
    const struct pay_json_value *root = parsed("{\"z\":1,\"a\":2,\"m\":3}");
    const struct pay_json_value *value = NULL;
    struct pay_str name = {NULL, 0};
    void *iterator = NULL;
    char names[8] = "";
    size_t count = 0;

    while (pay_json_next(root, &iterator, &name, &value)) {
        int64_t number = 0;
        assert_true(pay_json_int(value, &number));
        names[count++] = name.ptr[0];
        assert_int_equal(number, count);
    }
    assert_string_equal(names, "zam");
    iterator = NULL;
    assert_false(pay_json_next(parsed("{}"), &iterator, &name, &value));
    iterator = NULL;
    assert_false(pay_json_next(parsed("[1]"), &iterator, &name, &value));
    iterator = NULL;
    assert_false(pay_json_next(NULL, &iterator, &name, &value));
}

/* What the buffer writes, this reads: for every byte. */
static void writing_and_reading_agree(void **state)
{
    (void)state;
    for (int c = 1; c < 256; c++) {
        const char raw[3] = {'x', (char)c, 0};
        pay_buf_reset(&fixture.text);
        pay_buf_add_json_str(&fixture.text, pay_str_of(raw));
        const struct pay_str back = pay_json_str(parsed(pay_buf_str(&fixture.text).ptr));
        assert_string_equal(back.ptr, c < 128 ? raw : "x\xef\xbf\xbd");
    }
}

static void names_are_total(void **state)
{
    (void)state;
    for (int i = 0; i < PAY_JSON_ERROR_COUNT; i++) {
        assert_string_not_equal(pay_json_error_name((enum pay_json_error)i), "?");
    }
    assert_string_equal(pay_json_error_name(PAY_JSON_ERROR_COUNT), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_refusal_has_its_class, make, drop),
        cmocka_unit_test_setup_teardown(blanks_count_in_strings_and_nowhere_else, make, drop),
        cmocka_unit_test_setup_teardown(absent_bytes_are_refused, make, drop),
        cmocka_unit_test_setup_teardown(an_error_text_quotes_no_payload, make, drop),
        cmocka_unit_test_setup_teardown(the_number_of_bytes_is_bounded, make, drop),
        cmocka_unit_test_setup_teardown(the_depth_is_bounded, make, drop),
        cmocka_unit_test_setup_teardown(brackets_side_by_side_or_in_strings_are_no_depth, make,
                                        drop),
        cmocka_unit_test_setup_teardown(only_integers_are_read_as_integers, make, drop),
        cmocka_unit_test_setup_teardown(accessors_of_another_kind_give_nothing, make, drop),
        cmocka_unit_test_setup_teardown(null_differs_from_absent, make, drop),
        cmocka_unit_test_setup_teardown(paths_walk_members_and_items, make, drop),
        cmocka_unit_test_setup_teardown(strings_are_whole_and_terminated, make, drop),
        cmocka_unit_test_setup_teardown(members_come_in_the_order_of_the_text, make, drop),
        cmocka_unit_test_setup_teardown(writing_and_reading_agree, make, drop),
        cmocka_unit_test(names_are_total),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
