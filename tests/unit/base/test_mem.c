/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: the heap is zeroed and checked, secrets can be wiped, randomness differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/mem.h"

#include <string.h>

static void memory_is_zeroed(void **state)
{
    (void)state;
    uint8_t *memory = pay_mem_new(16, 16);
    int sum = memory == NULL ? 1 : 0;

    for (size_t i = 0; memory != NULL && i < 256; i++) {
        sum += memory[i];
    }
    assert_null(pay_mem_free(memory));
    assert_int_equal(sum, 0);
    assert_null(pay_mem_free(NULL));
}

static void a_product_that_overflows_is_refused(void **state)
{
    (void)state;
    volatile size_t many = SIZE_MAX / 2 + 1; /* volatile: the compiler would warn of it. */
    assert_null(pay_mem_new(many, 2));
}

static void wiping_zeroes_what_is_asked_and_no_more(void **state)
{
    (void)state;
    char text[] = "secret-tail";

    pay_mem_wipe(text, 6);
    assert_memory_equal(text, "\0\0\0\0\0\0-tail", 12);
    pay_mem_wipe(NULL, 5);
}

static void random_bytes_differ(void **state)
{
    (void)state;
    uint8_t a[600] = {0};
    uint8_t b[600] = {0};
    size_t zeros = 0;

    pay_mem_random(a, sizeof a);
    pay_mem_random(b, sizeof b);
    assert_memory_not_equal(a, b, 32);
    for (size_t i = 0; i < sizeof a; i++) {
        zeros += a[i] == 0 ? 1 : 0;
    }
    assert_true(zeros < 60); /* About 2 are expected: it is filled to the end. */
    assert_memory_not_equal(a + 568, b + 568, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed),
        cmocka_unit_test(a_product_that_overflows_is_refused),
        cmocka_unit_test(wiping_zeroes_what_is_asked_and_no_more),
        cmocka_unit_test(random_bytes_differ),
    };
    return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
