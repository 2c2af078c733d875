/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: ids have the ULID form, carry the time they were made at, and do not repeat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/ulid.h"

#include <string.h>

#define MANY 2000

static int64_t ms_of(const char *ulid)
{
    static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    int64_t ms = 0;

    for (int i = 0; i < 10; i++) {
        const char *at = strchr(alphabet, ulid[i]);
        assert_non_null(at);
        ms = ms * 32 + (at - alphabet);
    }
    return ms;
}

static void the_time_is_inside(void **state)
{
    (void)state;
    char ulid[PAY_ULID_LEN + 1];

    const int64_t before = pay_clock_wall_us() / 1000;
    pay_ulid_new(ulid);
    const int64_t after = pay_clock_wall_us() / 1000;
    assert_int_equal(strlen(ulid), PAY_ULID_LEN);
    assert_true(ms_of(ulid) >= before && ms_of(ulid) <= after);
}

static void they_are_valid_and_differ(void **state)
{
    (void)state;
    static char ulids[MANY][PAY_ULID_LEN + 1];
    uint64_t letters_seen[PAY_ULID_LEN] = {0};

    for (size_t i = 0; i < MANY; i++) {
        pay_ulid_new(ulids[i]);
        assert_true(pay_ulid_valid(pay_str_of(ulids[i])));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(ulids[i], ulids[k]);
        }
        for (size_t at = 0; at < PAY_ULID_LEN; at++) {
            letters_seen[at] |= UINT64_C(1) << (ulids[i][at] - '0');
        }
    }
    for (size_t at = 10; at < PAY_ULID_LEN;
         at++) { /* Each random place really varies: 32 letters. */
        assert_int_equal(__builtin_popcountll(letters_seen[at]), 32);
    }
}

static const struct {
    const char *text;
    bool is_valid;
} rows[] = {
    {"01ARZ3NDEKTSV4RRFFQ69G5FAV", true},
    {"00000000000000000000000000", true},
    {"7ZZZZZZZZZZZZZZZZZZZZZZZZZ", true},
    {"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", false}, /* 129 bits. */
    {"01arz3ndektsv4rrffq69g5fav", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FAI", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FAL", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FAO", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FAU", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FA", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FAVA", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FA-", false},
    {"01ARZ3NDEKTSV4RRFFQ69G5FA ", false},
    {"/1ARZ3NDEKTSV4RRFFQ69G5FAV", false},
    {"", false},
};

static void every_row(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("\"%s\"\n", rows[i].text);
        assert_int_equal(pay_ulid_valid(pay_str_of(rows[i].text)), rows[i].is_valid);
    }
    assert_false(pay_ulid_valid((struct pay_str){NULL, 0}));
    assert_false(pay_ulid_valid((struct pay_str){"01ARZ3NDEKTSV4RRFFQ69G5FA\0", 26}));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_is_inside),
        cmocka_unit_test(they_are_valid_and_differ),
        cmocka_unit_test(every_row),
    };
    return cmocka_run_group_tests_name("ulid", tests, NULL, NULL);
}
