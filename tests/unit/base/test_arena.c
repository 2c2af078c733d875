/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: the arena is bounded exactly, aligned, zeroed, and the same after each reset. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/arena.h"

#include <string.h>

#define MAX_BYTES 1024u

static int make(void **state)
{
    *state = pay_arena_new(MAX_BYTES);
    return *state == NULL ? -1 : 0;
}

static int drop(void **state)
{
    *state = pay_arena_free(*state);
    return *state == NULL ? 0 : -1;
}

static void the_maximum_is_exact(void **state)
{
    assert_non_null(pay_arena_alloc(*state, MAX_BYTES));
    assert_null(pay_arena_alloc(*state, 1));
    assert_null(pay_arena_alloc(*state, 0));
    pay_arena_reset(*state);
    assert_null(pay_arena_alloc(*state, MAX_BYTES + 1));
    assert_int_equal(pay_arena_used(*state), 0); /* A refusal takes nothing. */
    assert_non_null(pay_arena_alloc(*state, 1));
}

static void small_ones_fill_it_and_no_more(void **state)
{
    size_t count = 0;
    while (pay_arena_alloc(*state, 16) != NULL) {
        count++;
        assert_true(count <= MAX_BYTES / 16);
    }
    assert_int_equal(count, MAX_BYTES / 16);
    assert_int_equal(pay_arena_used(*state), MAX_BYTES);
}

static void what_was_refused_is_remembered_until_the_reset(void **state)
{
    assert_false(pay_arena_refused(*state));
    assert_non_null(pay_arena_alloc(*state, 8));
    assert_false(pay_arena_refused(*state));
    assert_null(pay_arena_alloc(*state, SIZE_MAX));
    assert_non_null(pay_arena_alloc(*state, 8));
    assert_true(pay_arena_refused(*state));
    pay_arena_reset(*state);
    assert_false(pay_arena_refused(*state));
    assert_null(pay_arena_array(*state, SIZE_MAX, 2));
    assert_true(pay_arena_refused(*state));
}

static void odd_sizes_are_aligned_and_apart(void **state)
{
    char *before = NULL;
    for (size_t bytes = 0; bytes < 24; bytes++) {
        char *at = pay_arena_alloc(*state, bytes);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % _Alignof(max_align_t), 0);
        assert_ptr_not_equal(at, before);
        before = at;
    }
}

static void memory_is_zero_after_a_reset_too(void **state)
{
    unsigned char *first = pay_arena_alloc(*state, 100);
    assert_non_null(first);
    memset(first, 0xff, 100);
    pay_arena_reset(*state);
    const unsigned char *again = pay_arena_alloc(*state, 100);
    assert_ptr_equal(again, first); /* The same memory, or this test shows nothing. */
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(again[i], 0);
    }
}

static void an_array_that_overflows_is_refused(void **state)
{
    assert_null(pay_arena_array(*state, SIZE_MAX / 2 + 1, 2)); /* The product would be 0. */
    assert_null(pay_arena_array(*state, SIZE_MAX, SIZE_MAX));
    assert_non_null(pay_arena_array(*state, 0, 8));
    assert_non_null(pay_arena_array(*state, 8, 0));
    assert_null(pay_arena_array(*state, 129, 8));
    assert_null(pay_arena_alloc(*state, SIZE_MAX));
}

static void text_is_copied_and_terminated(void **state)
{
    const struct pay_str abc = pay_arena_str(*state, (struct pay_str){"abcdef", 3});
    assert_string_equal(abc.ptr, "abc");
    assert_int_equal(abc.len, 3);

    const struct pay_str empty = pay_arena_str(*state, PAY_STR(""));
    assert_non_null(empty.ptr);
    assert_int_equal(empty.len, 0);

    const struct pay_str absent = pay_arena_str(*state, (struct pay_str){NULL, 0});
    assert_null(absent.ptr);

    static const uint8_t raw[] = {0, 1, 2};
    const struct pay_bytes bytes = pay_arena_bytes(*state, (struct pay_bytes){raw, sizeof raw});
    assert_memory_equal(bytes.ptr, raw, sizeof raw);
    assert_ptr_not_equal(bytes.ptr, raw);
    assert_null(pay_arena_bytes(*state, (struct pay_bytes){NULL, 0}).ptr);
}

static void text_at_the_maximum_is_absent(void **state)
{
    static char big[MAX_BYTES];
    memset(big, 'x', sizeof big);

    const struct pay_str lost = pay_arena_str(*state, (struct pay_str){big, sizeof big});
    assert_null(lost.ptr); /* The terminator does not fit. */
    assert_int_equal(lost.len, 0);
    assert_non_null(pay_arena_str(*state, (struct pay_str){big, sizeof big - 1}).ptr);
    assert_null(pay_arena_printf(*state, "%d", 1).ptr);
}

static void printf_measures_first(void **state)
{
    const struct pay_str text = pay_arena_printf(*state, "%s-%03d", "po", 7);
    assert_string_equal(text.ptr, "po-007");
    assert_int_equal(text.len, 6);
}

static void a_size_that_overflows_gives_no_arena(void **state)
{
    (void)state;
    assert_null(pay_arena_new(SIZE_MAX));
    assert_null(pay_arena_free(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_maximum_is_exact, make, drop),
        cmocka_unit_test_setup_teardown(small_ones_fill_it_and_no_more, make, drop),
        cmocka_unit_test_setup_teardown(what_was_refused_is_remembered_until_the_reset, make, drop),
        cmocka_unit_test_setup_teardown(odd_sizes_are_aligned_and_apart, make, drop),
        cmocka_unit_test_setup_teardown(memory_is_zero_after_a_reset_too, make, drop),
        cmocka_unit_test_setup_teardown(an_array_that_overflows_is_refused, make, drop),
        cmocka_unit_test_setup_teardown(text_is_copied_and_terminated, make, drop),
        cmocka_unit_test_setup_teardown(text_at_the_maximum_is_absent, make, drop),
        cmocka_unit_test_setup_teardown(printf_measures_first, make, drop),
        cmocka_unit_test(a_size_that_overflows_gives_no_arena),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
