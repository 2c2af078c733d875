/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: what was shown lasts a while, then it is asked for; a failure is asked about at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/service/broker.h"

static struct {
    enum pay_status answer;
    int asked;
    struct pay_broker *shows; /* While it is being asked, a record is acknowledged. */
} kafka;

static enum pay_status ask(void *ctx, int timeout_ms, struct pay_err *err)
{
    assert_ptr_equal(ctx, &kafka);
    assert_int_equal(timeout_ms, PAY_BROKER_ASK_MS);
    kafka.asked++;
    if (kafka.shows != NULL) {
        pay_broker_shown(kafka.shows);
    }
    return kafka.answer == PAY_OK ? PAY_OK : pay_err_set(err, kafka.answer, 0, "ask", "away");
}

static void look(struct pay_broker *broker, enum pay_status answer, int asked)
{
    kafka.answer = answer;
    kafka.asked = 0;
    pay_broker_look(broker, ask, &kafka);
    assert_int_equal(kafka.asked, asked);
}

/* As if so much time had passed. */
static void age(struct pay_broker *broker, int64_t ms)
{
    atomic_store(&broker->shown_us, pay_clock_mono_us() - ms * 1000);
}

static void at_first_it_is_asked(void **state)
{
    (void)state;
    struct pay_broker broker = {.is_told = false};
    assert_false(pay_broker_ok(&broker));
    look(&broker, PAY_RETRY, 1);
    assert_false(pay_broker_ok(&broker));
    look(&broker, PAY_OK, 0); /* Not all the time. */
    assert_false(pay_broker_ok(&broker));
    age(&broker, PAY_BROKER_QUIET_MS);
    look(&broker, PAY_OK, 1);
    assert_true(pay_broker_ok(&broker));
}

static void what_was_shown_need_not_be_asked_until_it_is_old(void **state)
{
    (void)state;
    struct pay_broker broker = {.is_told = false};
    pay_broker_shown(&broker);
    look(&broker, PAY_RETRY, 0);
    assert_true(pay_broker_ok(&broker));
    age(&broker, PAY_BROKER_QUIET_MS);
    look(&broker, PAY_RETRY, 1);
    assert_false(pay_broker_ok(&broker)); /* An idle process notices. */
    pay_broker_shown(&broker);
    assert_true(pay_broker_ok(&broker)); /* And a busy one is believed at once. */
}

static void a_failure_is_asked_about_at_once(void **state)
{
    (void)state;
    struct pay_broker broker = {.is_told = false};
    pay_broker_shown(&broker);
    pay_broker_failed(&broker);
    assert_false(pay_broker_ok(&broker));
    look(&broker, PAY_OK, 1);
    assert_true(pay_broker_ok(&broker));
}

static void what_is_shown_meanwhile_is_newer_than_no_answer(void **state)
{
    (void)state;
    struct pay_broker broker = {.is_told = false};
    kafka.shows = &broker;
    look(&broker, PAY_RETRY, 1);
    kafka.shows = NULL;
    assert_true(pay_broker_ok(&broker));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_first_it_is_asked),
        cmocka_unit_test(what_was_shown_need_not_be_asked_until_it_is_old),
        cmocka_unit_test(a_failure_is_asked_about_at_once),
        cmocka_unit_test(what_is_shown_meanwhile_is_newer_than_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
