/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: one row of a key is on its way at a time, rows of other keys go on, nothing is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <string.h>

#include "services/publisher/window.h"

static struct pay_window window; /* Too large for a stack frame of a test. */

static void add(int64_t id, const char *key)
{
    struct pay_outbox_row row = {.id = id, .key = pay_str_of(key)};
    row.payload = (struct pay_bytes){(const uint8_t *)"payload", 7};
    const struct pay_str headers[] = {PAY_STR("ce_id"), pay_str_of(key)};
    row.headers = headers;
    row.header_count = 1;
    struct pay_err err = {.status = PAY_OK};
    assert_int_equal(pay_window_add(&window, &row, 1, &err), PAY_OK);
}

static void rows_that_came_together_end_alone(void **state)
{
    (void)state;
    struct pay_outbox_row rows[3] = {{.id = 9}, {.id = 4}, {.id = 7}};
    const struct pay_str headers[] = {PAY_STR("ce_id"), PAY_STR("x")};
    for (int i = 0; i < 3; i++) {
        rows[i].key = PAY_STR("P1");
        rows[i].payload = (struct pay_bytes){(const uint8_t *)"payload", 7};
        rows[i].headers = headers;
        rows[i].header_count = (size_t)(i % 2);
    }
    struct pay_err err = {.status = PAY_OK};
    assert_int_equal(pay_window_add(&window, rows, 3, &err), PAY_OK);
    assert_int_equal(window.rows[0]->id, 4);
    assert_int_equal(window.rows[2]->id, 9);
    assert_string_equal(window.rows[0]->headers[1].ptr, "x");
    window.rows[1]->state = PAY_ROW_DELIVERED;
    assert_int_equal(pay_window_drop(&window, PAY_ROW_DELIVERED), 1);
    assert_int_equal(window.count, 2);
    assert_memory_equal(window.rows[1]->payload.ptr, "payload", 7); /* The others stay whole. */
    pay_window_clear(&window);
    assert_int_equal(window.bytes, 0);
}

static int teardown(void **state)
{
    (void)state;
    pay_window_clear(&window);
    return 0;
}

static void rows_are_copied_whole(void **state)
{
    (void)state;
    char key[] = "P1";
    add(7, key);
    memset(key, 'x', 2);
    assert_string_equal(window.rows[0]->key.ptr, "P1");
    assert_string_equal(window.rows[0]->headers[1].ptr, "P1");
    assert_int_equal(window.rows[0]->payload.len, 7);
    assert_memory_equal(window.rows[0]->payload.ptr, "payload", 7);
    assert_int_equal(window.cursor, 7);
}

static void the_first_of_each_key_is_ready(void **state)
{
    (void)state;
    add(1, "P1");
    add(2, "P2");
    add(3, "P1");
    struct pay_outbox_row *ready[8];
    assert_int_equal(pay_window_ready(&window, ready, 8), 2);
    assert_int_equal(ready[0]->id, 1);
    assert_int_equal(ready[1]->id, 2);
}

static void a_row_in_flight_or_refused_holds_its_key(void **state)
{
    (void)state;
    add(1, "P1");
    add(2, "P1");
    struct pay_outbox_row *ready[8];
    window.rows[0]->state = PAY_ROW_IN_FLIGHT;
    assert_int_equal(pay_window_ready(&window, ready, 8), 0);
    window.rows[0]->state = PAY_ROW_REFUSED;
    assert_int_equal(pay_window_ready(&window, ready, 8), 0);
    window.rows[0]->state = PAY_ROW_DELIVERED;
    assert_int_equal(pay_window_ready(&window, ready, 8), 1);
    assert_int_equal(ready[0]->id, 2);
}

static void a_swept_row_takes_its_place_in_order(void **state)
{
    (void)state;
    add(5, "P1");
    add(3, "P1");
    struct pay_outbox_row *ready[8];
    assert_int_equal(pay_window_ready(&window, ready, 8), 1);
    assert_int_equal(ready[0]->id, 3);
    assert_int_equal(window.cursor, 5); /* The cursor does not go back. */
}

static void the_cap_is_kept(void **state)
{
    (void)state;
    add(1, "P1");
    add(2, "P2");
    struct pay_outbox_row *ready[1];
    assert_int_equal(pay_window_ready(&window, ready, 1), 1);
    assert_int_equal(pay_window_ready(&window, ready, 0), 0);
}

static void a_full_window_still_finds_every_key(void **state)
{
    (void)state;
    char key[16];
    for (int i = 0; i < PAY_WINDOW_ROWS_MAX; i++) {
        memcpy(key, "P0000", 6);
        for (int digit = 4, rest = i; digit > 0; digit--, rest /= 10) {
            key[digit] = (char)('0' + rest % 10);
        }
        add(i + 1, key);
    }
    static struct pay_outbox_row *ready[PAY_WINDOW_ROWS_MAX];
    assert_int_equal(pay_window_ready(&window, ready, PAY_WINDOW_ROWS_MAX), PAY_WINDOW_ROWS_MAX);
}

static void dropping_keeps_the_others(void **state)
{
    (void)state;
    add(1, "P1");
    add(2, "P2");
    add(3, "P3");
    window.rows[1]->state = PAY_ROW_DELIVERED;
    assert_int_equal(pay_window_drop(&window, PAY_ROW_DELIVERED), 1);
    assert_int_equal(window.count, 2);
    assert_int_equal(window.rows[1]->id, 3);
}

static void a_row_in_flight_outlives_its_window(void **state)
{
    (void)state;
    add(1, "P1");
    struct pay_outbox_row *row = window.rows[0];
    row->state = PAY_ROW_IN_FLIGHT;
    pay_window_clear(&window);
    assert_int_equal(window.count, 0);
    assert_true(row->orphaned); /* Freed by its report; the leak checker would tell. */
    pay_outbox_row_free(row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(rows_are_copied_whole, teardown),
        cmocka_unit_test_teardown(rows_that_came_together_end_alone, teardown),
        cmocka_unit_test_teardown(the_first_of_each_key_is_ready, teardown),
        cmocka_unit_test_teardown(a_row_in_flight_or_refused_holds_its_key, teardown),
        cmocka_unit_test_teardown(a_swept_row_takes_its_place_in_order, teardown),
        cmocka_unit_test_teardown(the_cap_is_kept, teardown),
        cmocka_unit_test_teardown(a_full_window_still_finds_every_key, teardown),
        cmocka_unit_test_teardown(dropping_keeps_the_others, teardown),
        cmocka_unit_test_teardown(a_row_in_flight_outlives_its_window, teardown),
    };
    return cmocka_run_group_tests_name("publisher.window", tests, NULL, NULL);
}
