/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that are refused: what is written down, who is told, and what is not touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "tests/integration/processor/world.h"

#define P payment_id(0)

/* By the shop, of its own payment. */
static struct pay_command cancel_command(const char *command_id)
{
    return (struct pay_command){.command_id = pay_str_of(command_id),
                                .type = PAY_CMD_CANCEL_PAYMENT,
                                .caller = PAY_STR("shop"),
                                .merchant_id = PAY_STR("acme"),
                                .payment_id = pay_str_of(P),
                                .reason_code = PAY_STR("CUSTOMER_LEFT"),
                                .issued_at_us = 1};
}

/* The order's row as a whole: what must not have been touched. */
static const char *order_row(struct world *world)
{
    static char row[2048];
    (void)snprintf(row, sizeof row, "%s",
                   pay_testdb_text(&world->db, "SELECT xmin::text || o::text FROM"
                                               " payfact.payment_order AS o"));
    return row;
}

static void expect_audit(struct world *world, const char *who, const char *subject,
                         const char *reason)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM payfact.audit_log WHERE who = '%s' AND what ="
                   " 'CANCEL_PAYMENT' AND subject = '%s' AND reason = '%s' AND from_where ="
                   " 'payfact.inputs'",
                   who, subject, reason);
    assert_int_equal(number(world, sql), 1);
}

/* Neither who is not allowed the command, nor who names another merchant's payment. */
static void a_stranger_to_the_payment_is_answered_and_touches_nothing(void **state)
{
    struct world *world = *state;
    struct pay_command command = cancel_command("c-1");
    char before[2048];
    add_create(world, P);
    turn(world);
    (void)snprintf(before, sizeof before, "%s", order_row(world));
    const int64_t rows = number(world, "SELECT count(*) FROM payfact.payment_state_history");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log"), 0);

    command.merchant_id = PAY_STR("rival");
    add_command(world, &command, world->shop, "shop-a");
    command.command_id = PAY_STR("c-2");
    command.merchant_id = PAY_STR("globex"); /* Allowed, for its own payments. */
    add_command(world, &command, world->shop, "shop-a");
    command.command_id = PAY_STR("c-3");
    command.merchant_id = PAY_STR("acme");
    command.caller = PAY_STR("operator-1");
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);

    assert_string_equal(order_row(world), before);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history"), rows + 3);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " payment_id = '' AND verdict = 'REJECT' AND aggregate ="
                                   " 'COMMAND' AND version_before = 0 AND published_sequence IS"
                                   " NULL"),
                     3);
    expect_audit(world, "shop", "shop/c-1", "NOT_ALLOWED");
    expect_audit(world, "shop", "shop/c-2", "FOREIGN_MERCHANT");
    expect_audit(world, "operator-1", "operator-1/c-3", "NOT_ALLOWED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE status ="
                                   " 'REJECTED' AND answer IS NOT NULL"),
                     3);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox WHERE topic ="
                                   " 'events' AND 'payfact.CommandRejected' = ANY (headers) AND"
                                   " key = '01ARZ3NDEKTSV4RRFFQ69G5A00'"),
                     3);
    /* The same again: the same answer, and nothing new was refused. */
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log"), 3);
}

/* Its own merchant's: in the payment's order, and on record all the same. */
static void a_refused_command_is_audited(void **state)
{
    struct world *world = *state;
    struct pay_command command = cancel_command("c-1");
    add_command(world, &command, world->shop, "shop-a"); /* Before there is such a payment. */
    turn(world);
    expect_audit(world, "shop", "shop/c-1", "UNKNOWN_PAYMENT");
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    command.command_id = PAY_STR("c-2");
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    expect_audit(world, "shop", "shop/c-2", "ORDER_FINAL");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log"), 2);
    assert_int_equal(number(world, "SELECT version FROM payfact.payment_order"), 2);
}

/* What the relay refused, the signer's own name included. */
static void a_command_that_the_relay_rejected_is_audited_and_answered(void **state)
{
    struct world *world = *state;
    struct pay_command command = cancel_command("c-1"); /* By the shop: it is not. */
    world->refusal = "WRONG_CALLER";
    add_command(world, &command, world->operator_1, "operator-1-a");
    command.command_id = PAY_STR("c-2");
    command.caller = PAY_STR("operator-1");
    command.type = PAY_CMD_UNRECOGNIZED;
    command.payment_id = PAY_STR("");
    command.reason_code = (struct pay_str){NULL, 0};
    world->refusal = "UNKNOWN_COMMAND";
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);
    assert_int_equal(world->letter_count, 0);
    expect_audit(world, "operator-1", "operator-1/c-1", "WRONG_CALLER");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log WHERE reason ="
                                   " 'UNKNOWN_COMMAND' AND who = 'operator-1'"),
                     1);
    assert_string_equal(published(world), "CommandRejected CommandRejected");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE caller ="
                                   " 'operator-1' AND status = 'REJECTED'"),
                     2);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_stranger_to_the_payment_is_answered_and_touches_nothing),
        TEST(a_refused_command_is_audited),
        TEST(a_command_that_the_relay_rejected_is_audited_and_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
