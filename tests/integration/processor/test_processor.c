/* SPDX-License-Identifier: Apache-2.0 */
/* The processor's transaction against a real database: what goes in as ingest makes it, what comes
 * out in tables and outbox. Kafka's part is in test_binary.py. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/clock.h"
#include "common/contracts/keys.h"
#include "common/core/id.h"
#include "tests/integration/processor/world.h"

/* The environment and the process are touched by the test's own thread only. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

#define P payment_id(0)
#define DEADLINE_US INT64_C(20000000)

static void a_create_makes_order_attempt_gate_job_and_events(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'PROCESSING' AND version = 1 AND description = 'socks'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_attempt WHERE status ="
                                   " 'CREATED' AND live AND attempt_no = 1"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_amount"), 1);
    /* The gate is passed with the digest of exactly the bytes that go out. */
    assert_int_equal(number(world,
                            "SELECT count(*) FROM payfact.psp_request g JOIN payfact.payment_outbox"
                            " o ON o.topic = 'psp-jobs' AND g.digest = sha256(o.payload)"
                            " WHERE g.kind = 'SUBMIT' AND g.sending_at IS NULL"),
                     1);
    assert_string_equal(published(world), "PaymentCreated AttemptStarted PaymentProcessing"
                                          " CommandAccepted");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE status ="
                                   " 'ACCEPTED'"),
                     1);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.payment_route WHERE params IS NOT NULL"), 1);
    /* One partition's place in the outbox for events and jobs alike. */
    assert_int_equal(number(world, "SELECT count(DISTINCT shard) FROM payfact.payment_outbox"), 1);
}

static void the_job_carries_the_routes_sealed_parameters(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    struct pay_psp_job job;
    static char hex[8192];
    static uint8_t bytes[4096];
    (void)snprintf(hex, sizeof(hex), "%s",
                   pay_testdb_text(&world->db, "SELECT encode(payload, 'hex') FROM"
                                               " payfact.payment_outbox WHERE topic = 'psp-jobs'"));
    size_t len = strlen(hex) / 2;
    assert_true(pay_hex_decode(pay_str_of(hex), bytes, len));
    world_must(world, pay_psp_job_decode(world->codec, (struct pay_bytes){bytes, len}, world->arena,
                                         &job, &world->err));
    assert_true(pay_str_eq_c(job.params.bound_to, "params/x/shop/create/0"));
    assert_true(pay_str_eq_c(job.description, "socks"));
    assert_int_equal(job.amount_minor, 100);
    assert_int_equal(job.kind, PAY_JOB_SUBMIT);
    assert_true(pay_str_eq_c(job.request_no, "01ARZ3NDEKTSV4RRFFQ69G5A00A01"));
}

static void a_success_settles_the_order_once(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED' AND version = 2"),
                     1);
    assert_int_equal(number(world, "SELECT captured_minor FROM payfact.payment_amount"), 100);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.attempt_reference WHERE"
                                   " reference LIKE 'pi_%'"),
                     1);
    assert_non_null(strstr(published(world), "PaymentSucceeded"));
    /* Every number once, none left out. */
    assert_int_equal(number(world, "SELECT count(*) - max(published_sequence) FROM"
                                   " payfact.payment_state_history WHERE published_sequence > 0"),
                     0);
    assert_int_equal(number(world, "SELECT max(published_sequence) - (SELECT event_sequence FROM"
                                   " payfact.payment_order) FROM payfact.payment_state_history"),
                     0);
}

/* D1, D5, D7: in one batch, in the next, and after the decision. */
static void D1_D5_five_copies_are_one_event(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    int64_t history = number(world, "SELECT count(*) FROM payfact.payment_state_history");
    int64_t outbox = number(world, "SELECT count(*) FROM payfact.payment_outbox");
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT delivery_count FROM payfact.channel_event"), 5);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history"), history);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox"), outbox);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " published_event_id LIKE 'PaymentSucceeded/%'"),
                     1);
}

/* Folding is not reordering: a payment's inputs are decided in the order of the log. */
static void a_whole_payment_in_one_batch_is_one_version(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_PROCESSING, "evt_1");
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_2");
    add_callback(world, P, PAY_EV_ATTEMPT_PROCESSING, "evt_3");
    turn(world);
    assert_int_equal(number(world, "SELECT version FROM payfact.payment_order"), 1);
    assert_string_equal(
        pay_testdb_text(&world->db,
                        "SELECT string_agg(to_status, ' ' ORDER BY id) FROM"
                        " payfact.payment_state_history WHERE aggregate = 'ATTEMPT' AND verdict ="
                        " 'APPLY'"),
        "CREATED PROCESSING SUCCEEDED");
    /* A row keeps the reason that it had when it was decided, whatever the order's is now. */
    assert_string_equal(
        pay_testdb_text(&world->db,
                        "SELECT string_agg(reason_code, ' ' ORDER BY id) FROM"
                        " payfact.payment_state_history WHERE aggregate = 'ORDER' AND verdict ="
                        " 'APPLY'"),
        "ACCEPTED FOLLOWS_ATTEMPT PAID");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " verdict = 'IGNORE'"),
                     1);
}

static void a_repeated_command_is_answered_as_before(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    int64_t history = number(world, "SELECT count(*) FROM payfact.payment_state_history");
    pay_testdb_run(&world->db, "CREATE TABLE public.answers AS SELECT payload FROM"
                               " payfact.payment_outbox WHERE headers::text LIKE"
                               " '%CommandAccepted%'");
    pay_testdb_run(&world->db, "DELETE FROM payfact.payment_outbox");
    add_create(world, P);
    add_create(world, P);
    turn(world);
    assert_string_equal(published(world), "CommandAccepted");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox JOIN public.answers"
                                   " USING (payload)"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history"), history);
}

/* D11 */
static void D11_other_content_under_a_commands_number_is_refused(void **state)
{
    struct world *world = *state;
    struct pay_command other = create_command(P);
    other.create_payment.amount.amount_minor = 999;
    add_create(world, P);
    add_command(world, &other, world->shop, "shop-a");
    turn(world);
    add_command(world, &other, world->shop, "shop-a");
    turn(world);
    assert_int_equal(number(world, "SELECT amount_minor FROM payfact.payment_order"), 100);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log WHERE reason ="
                                   " 'COMMAND_ID_REUSED'"),
                     2);
    assert_string_equal(published(world), "CommandRejected PaymentCreated AttemptStarted"
                                          " PaymentProcessing CommandAccepted CommandRejected");
}

static void the_same_order_number_is_refused_for_another_payment(void **state)
{
    struct world *world = *state;
    struct pay_command second = create_command(payment_id(1));
    second.create_payment.merchant_order_no = pay_str_of(P);
    add_create(world, P);
    turn(world);
    add_command(world, &second, world->shop, "shop-a");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 1);
    assert_string_equal(pay_testdb_text(&world->db, "SELECT reason_code FROM payfact.command WHERE"
                                                    " status = 'REJECTED'"),
                        "DUPLICATE_ORDER_NO");
}

/* Both in one batch: whichever the database takes first, the other is decided again. */
static void two_payments_with_one_order_number_in_one_batch(void **state)
{
    struct world *world = *state;
    struct pay_command second = create_command(payment_id(1));
    second.create_payment.merchant_order_no = pay_str_of(P);
    add_create(world, P);
    add_command(world, &second, world->shop, "shop-a");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE reason_code ="
                                   " 'DUPLICATE_ORDER_NO'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_attempt"), 1);
}

static void expect_poison(struct world *world, const char *reason, size_t letters)
{
    char sql[256];
    assert_int_equal(world->letter_count, letters);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM payfact.channel_event WHERE kind = 'POISON' AND status ="
                   " 'DEAD' AND verification = '%s' AND body IS NOT NULL",
                   reason);
    assert_true(number(world, sql) >= 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case WHERE kind ="
                                   " 'DEAD_INPUT' AND status = 'OPEN'"),
                     (int64_t)letters);
}

static void a_command_by_a_wrong_key_is_dead(void **state)
{
    struct world *world = *state;
    const struct pay_command command = create_command(P);
    add_command(world, &command, world->stranger, "shop-a");         /* the signature */
    add_command(world, &command, world->shop, "nobody-a");           /* the key */
    add_command(world, &command, world->operator_1, "operator-1-a"); /* another's caller */
    turn(world);
    expect_poison(world, "SIGNATURE", 3);
    expect_poison(world, "KEY_UNKNOWN", 3);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 0);
}

static void a_command_that_is_not_allowed_is_answered(void **state)
{
    struct world *world = *state;
    struct pay_command command = create_command(P);
    command.caller = PAY_STR("operator-1");
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);
    assert_string_equal(published(world), "CommandRejected");
    assert_string_equal(pay_testdb_text(&world->db, "SELECT reason_code FROM payfact.command"),
                        "NOT_ALLOWED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 0);
}

static void undecodable_bytes_are_kept_sealed_and_the_rest_commits(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 5; i++) {
        add_create(world, payment_id(i));
    }
    add_bytes(world, "k", "4111111111111111 is no input", 28);
    for (int i = 5; i < 10; i++) {
        add_create(world, payment_id(i));
    }
    turn(world);
    expect_poison(world, "MALFORMED", 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 10);
    /* Neither the database nor the dead letter holds it in plain. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE"
                                   " position('4111111111111111'::bytea IN body) > 0"),
                     0);
    struct pay_dead_letter letter;
    world_must(world, pay_dead_letter_decode(world->codec, world->letters[0], world->arena, &letter,
                                             &world->err));
    assert_null(letter.value.ptr);
    struct pay_buf plain = pay_buf_make(1024);
    const struct pay_bytes aad = {(const uint8_t *)letter.sealed_value.bound_to.ptr,
                                  letter.sealed_value.bound_to.len};
    world_must(world, pay_keyring_open(world->keyring, letter.sealed_value.key_id, aad,
                                       letter.sealed_value.ciphertext, &plain, &world->err));
    assert_true(pay_str_eq_c(pay_buf_str(&plain), "4111111111111111 is no input"));
    assert_true(pay_str_eq_c(letter.dead_letter_id, "payfact.inputs/0/5"));
    pay_buf_free(&plain);
}

/* P6: what the database refuses is halved out in at most 2 log2 N + 1 transactions. */
static void data_that_the_database_refuses_is_isolated(void **state)
{
    struct world *world = *state;
    for (int i = 0; i < 64; i++) {
        if (i == 0) {
            add_create(world, P);
        } else if (i == 37) {
            struct pay_payment_input bad = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_bad");
            bad.source = PAY_SOURCE_SYNC;
            bad.event.call = (struct pay_call){
                .is_set = true,
                .job_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5A00A01.SUBMIT"),
                .send_no = 1,
                .http_status = 100000, /* no column holds it */
            };
            add_input(world, &bad, P);
        } else {
            add_create(world, payment_id(i));
        }
    }
    turn(world);
    expect_poison(world, "DATA_REFUSED", 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 63);
    assert_int_equal(number(world, "SELECT count(DISTINCT decided_at) FROM"
                                   " payfact.payment_state_history"),
                     6); /* halves that committed: 32, 16, 8, 4, 2 and 1 */
    assert_int_equal(world->waits, 0);
}

static void a_poison_that_comes_again_is_one_case(void **state)
{
    struct world *world = *state;
    add_bytes(world, "k", "junk", 4);
    turn(world);
    world->offset = 0; /* redelivered: the offset was not stored */
    world->refuse_letters = true;
    add_bytes(world, "k", "junk", 4);
    turn(world);
    assert_int_equal(world->letter_count, 2);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case"), 1);
    assert_int_equal(number(world, "SELECT delivery_count FROM payfact.channel_event"), 2);
}

static void an_event_that_no_source_may_bring_is_dead(void **state)
{
    struct world *world = *state;
    struct pay_payment_input forged = callback(P, PAY_EV_ATTEMPT_SUBMITTED, "evt_1");
    add_input(world, &forged, P); /* SUB by a webhook */
    forged = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_2");
    forged.source = PAY_SOURCE_OPERATOR;
    forged.evidence_level = PAY_EVIDENCE_CONTROLLED;
    add_input(world, &forged, P);
    forged = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_3");
    forged.source = PAY_SOURCE_QUERY; /* an answer without a question */
    add_input(world, &forged, P);
    turn(world);
    expect_poison(world, "MALFORMED", 3);
}

/* The level that a message claims is worth nothing. */
static void evidence_is_derived_and_not_believed(void **state)
{
    struct world *world = *state;
    struct pay_payment_input liar = callback(P, PAY_EV_ATTEMPT_PROCESSING, "evt_1");
    liar.evidence_level = PAY_EVIDENCE_CONTROLLED;
    add_create(world, P);
    add_input(world, &liar, P);
    turn(world);
    assert_int_equal(number(world, "SELECT result_certainty FROM payfact.payment_attempt"), 3);
    assert_int_equal(number(world, "SELECT max(evidence_level) FROM payfact.payment_state_history"),
                     3);
}

/* Q7: delivered before its payment, then decided by a replay. */
static void Q7_an_orphan_waits_and_is_decided_again(void **state)
{
    struct world *world = *state;
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE status ="
                                   " 'ORPHAN'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline WHERE kind ="
                                   " 'ORPHAN' AND aggregate_id = 'stripe/stripe-acme/evt_1'"),
                     1);
    add_replay(world, "evt_1"); /* too early */
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE status ="
                                   " 'ORPHAN'"),
                     1);
    add_create(world, P);
    add_replay(world, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE status ="
                                   " 'DECIDED'"),
                     1);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.payment_deadline WHERE kind = 'ORPHAN'"), 0);
    add_replay(world, "evt_1");
    add_replay(world, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT version FROM payfact.payment_order"), 1);
}

static void Q7_a_repeated_delivery_decides_an_orphan_too(void **state)
{
    struct world *world = *state;
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    add_create(world, P);
    turn(world);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.payment_deadline WHERE kind = 'ORPHAN'"), 0);
}

static void an_orphan_is_given_up_when_its_budget_is_spent(void **state)
{
    struct world *world = *state;
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    pay_testdb_run(&world->db, "UPDATE payfact.channel_event SET first_seen_at = now() - interval"
                               " '2 hours'");
    add_replay(world, "evt_1");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE status ="
                                   " 'DEAD'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case WHERE kind ="
                                   " 'ORPHAN'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline"), 0);
    assert_int_equal(world->letter_count, 1);
    /* Given up is not forgotten: an operator's REPLAY_INPUT decides it once its payment is there.
     */
    struct pay_command replay = {.command_id = PAY_STR("replay-1"),
                                 .type = PAY_CMD_REPLAY_INPUT,
                                 .caller = PAY_STR("operator-1"),
                                 .merchant_id = PAY_STR("acme"),
                                 .payment_id = pay_str_of(P),
                                 .subject = {.psp = PAY_STR("stripe"),
                                             .psp_account = PAY_STR("stripe-acme"),
                                             .transport_key = PAY_STR("evt_1"),
                                             .reason_code = PAY_STR("FIXED")}};
    add_create(world, P);
    add_command(world, &replay, world->operator_1, "operator-1-a");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log WHERE what ="
                                   " 'REPLAY_INPUT' AND who = 'operator-1'"),
                     1);
}

static void somebody_elses_event_is_recorded_as_foreign(void **state)
{
    struct world *world = *state;
    struct pay_payment_input foreign = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    foreign.payment_id = (struct pay_str){NULL, 0};
    foreign.event.merchant_request_no = PAY_STR("legacy-system-4711");
    add_input(world, &foreign, "k");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " reason_code = 'FOREIGN' AND verdict = 'IGNORE'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline"), 0);
}

static void an_event_without_our_number_is_found_by_its_reference(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_PROCESSING, "evt_1");
    turn(world);
    struct pay_payment_input unnamed = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_2");
    unnamed.payment_id = (struct pay_str){NULL, 0};
    unnamed.event.merchant_request_no = (struct pay_str){NULL, 0};
    add_input(world, &unnamed, "stripe/stripe-acme/pi");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE payment_id IS"
                                   " NULL"),
                     0);
}

static void A13_a_wrong_amount_moves_nothing_and_opens_a_case(void **state)
{
    struct world *world = *state;
    struct pay_payment_input wrong = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    wrong.event.amount.amount_minor = 99;
    add_create(world, P);
    add_input(world, &wrong, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     0);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case WHERE kind ="
                                   " 'AMOUNT_MISMATCH' AND status = 'OPEN' AND version = 1"),
                     1);
    struct pay_payment_input again = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_2");
    again.event.amount.amount_minor = 98;
    add_input(world, &again, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case"), 1);
    assert_int_equal(number(world, "SELECT jsonb_array_length(evidence) FROM payfact.manual_case"),
                     2);
}

static void a_paused_route_gets_no_attempt(void **state)
{
    struct world *world = *state;
    struct pay_command pause = {.command_id = PAY_STR("pause-1"),
                                .type = PAY_CMD_PAUSE_ROUTE,
                                .caller = PAY_STR("operator-1"),
                                .merchant_id = PAY_STR("acme"),
                                .payment_id = PAY_STR(""),
                                .subject = {.psp = PAY_STR("stripe"),
                                            .psp_account = PAY_STR("stripe-acme"),
                                            .method = PAY_STR(""),
                                            .reason_code = PAY_STR("INCIDENT")}};
    add_command(world, &pause, world->operator_1, "operator-1-a");
    turn(world);
    assert_string_equal(published(world), "CommandAccepted");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.route_pause"), 1);
    add_create(world, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_attempt"), 0);
    pause.type = PAY_CMD_RESUME_ROUTE;
    pause.command_id = PAY_STR("resume-1");
    add_command(world, &pause, world->operator_1, "operator-1-a");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.route_pause"), 0);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log"), 2);
}

/* A dead event holds its payment's later ones until an operator gives it up. */
static void a_discarded_event_is_withheld_under_its_number(void **state)
{
    struct world *world = *state;
    static char event_id[PAY_EVENT_ID_SIZE];
    struct pay_command discard = {.command_id = PAY_STR("discard-1"),
                                  .type = PAY_CMD_DISCARD_EVENT,
                                  .caller = PAY_STR("operator-1"),
                                  .merchant_id = PAY_STR("acme"),
                                  .payment_id = pay_str_of(P),
                                  .subject = {.reason_code = PAY_STR("TOO_LARGE")}};
    add_create(world, P);
    turn(world);
    (void)snprintf(event_id, sizeof(event_id), "%s",
                   pay_testdb_text(&world->db, "SELECT headers[array_position(headers, 'ce_id') +"
                                               " 1] FROM payfact.payment_outbox WHERE"
                                               " headers::text LIKE '%AttemptStarted%'"));
    discard.subject.event_id = pay_str_of(event_id);
    add_command(world, &discard, world->operator_1, "operator-1-a"); /* not dead: refused */
    turn(world);
    assert_string_equal(pay_testdb_text(&world->db, "SELECT reason_code FROM payfact.command WHERE"
                                                    " command_id = 'discard-1'"),
                        "NO_SUCH_EVENT");
    pay_testdb_run(&world->db, "UPDATE payfact.payment_outbox SET dead_at = now(), dead_reason ="
                               " 'TOO_LARGE', attempts = 9 WHERE headers::text LIKE"
                               " '%AttemptStarted%'");
    discard.command_id = PAY_STR("discard-2");
    add_command(world, &discard, world->operator_1, "operator-1-a");
    turn(world);
    assert_string_equal(published(world),
                        "PaymentCreated EventWithheld PaymentProcessing CommandAccepted"
                        " CommandRejected CommandAccepted");
    /* Not dead any more, and its key is held until the publisher has had time to read it again. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox WHERE dead_at IS"
                                   " NOT NULL"),
                     0);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox WHERE attempts = 1"
                                   " AND available_at > now() AND headers::text LIKE"
                                   " '%EventWithheld%'"),
                     1);
    static uint8_t bytes[4096];
    static char hex[8193];
    struct pay_payment_event event;
    (void)snprintf(hex, sizeof(hex), "%s",
                   pay_testdb_text(&world->db, "SELECT encode(payload, 'hex') FROM"
                                               " payfact.payment_outbox WHERE headers::text LIKE"
                                               " '%EventWithheld%'"));
    size_t len = strlen(hex) / 2;
    assert_true(pay_hex_decode(pay_str_of(hex), bytes, len));
    world_must(world, pay_payment_event_decode(world->codec, (struct pay_bytes){bytes, len},
                                               world->arena, &event, &world->err));
    assert_int_equal(event.sequence, 2);
    assert_true(pay_str_eq_c(event.withheld.event_id, event_id));
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.audit_log WHERE what ="
                                   " 'DISCARD_EVENT'"),
                     2);
}

static struct pay_payment_input expiry_of_order(struct world *world, int64_t due_us)
{
    (void)world;
    return (struct pay_payment_input){
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_DEADLINE,
        .source = PAY_SOURCE_LOCAL,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = pay_str_of(P),
        .deadline = {PAY_STR("ORDER_EXPIRY"), pay_str_of(P), due_us},
        .transport_key = PAY_STR("x"),
        .received_at_us = 1,
    };
}

static void an_old_deadline_changes_nothing(void **state)
{
    struct world *world = *state;
    struct pay_command command = create_command(P);
    command.create_payment.start = false;
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    const struct pay_payment_input old = expiry_of_order(world, 1700000000000000);
    add_input(world, &old, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'CREATED'"),
                     1);
    pay_testdb_run(&world->db,
                   "UPDATE payfact.payment_deadline SET due_at = now() - interval '1 s';"
                   " UPDATE payfact.payment_order SET expires_at = now() - interval"
                   " '1 s'");
    const struct pay_payment_input due = expiry_of_order(
        world, number(world, "SELECT (extract(epoch FROM due_at) * 1000000)::int8 FROM"
                             " payfact.payment_deadline"));
    add_input(world, &due, P);
    add_input(world, &due, P);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'EXPIRED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline"), 0);
}

/* ---- races, crashes, outages ---- */

struct racer {
    struct world *world;
    struct pay_worker *worker;
    struct pay_kafka_msg msgs[RECORDS_MAX];
    size_t count;
    pthread_t thread;
    enum pay_status status;
    struct pay_err err;
};

static void *race(void *arg)
{
    struct racer *racer = arg;
    for (size_t i = 0; i < racer->count && racer->status == PAY_OK; i += 4) {
        size_t count = racer->count - i < 4 ? racer->count - i : 4;
        racer->status = pay_worker_turn(racer->worker, racer->world->accounts, &racer->msgs[i],
                                        count, &racer->err);
    }
    return NULL;
}

/* The same payments' inputs on two workers at once, as after a wrong partitioner. */
static void two_workers_on_the_same_payments_lose_nothing(void **state)
{
    struct world *world = *state;
    struct racer *racers = calloc(2, sizeof(*racers));
    for (int p = 0; p < 20; p++) {
        add_create(world, payment_id(p));
    }
    turn(world);
    for (int r = 0; r < 2; r++) {
        racers[r].world = world;
        racers[r].worker = world_worker(world);
        for (int p = 0; p < 20; p++) {
            char key[32];
            (void)snprintf(key, sizeof(key), "evt_p_%d_%d", r, p);
            add_callback(world, payment_id(p), PAY_EV_ATTEMPT_PROCESSING, key);
            (void)snprintf(key, sizeof(key), "evt_s_%d", p); /* the same one on both */
            add_callback(world, payment_id(p), PAY_EV_ATTEMPT_SUCCEEDED, key);
        }
        memcpy(racers[r].msgs, world->msgs, world->count * sizeof(world->msgs[0]));
        racers[r].count = world->count;
        world->count = 0;
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(pthread_create(&racers[r].thread, NULL, race, &racers[r]), 0);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(pthread_join(racers[r].thread, NULL), 0);
        assert_int_equal(racers[r].status, PAY_OK);
        racers[r].worker = pay_worker_close(racers[r].worker);
    }
    free(racers);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     20);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " published_event_id LIKE 'PaymentSucceeded/%'"),
                     20);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event"), 60);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order o WHERE"
                                   " event_sequence <> (SELECT count(DISTINCT published_sequence)"
                                   " FROM payfact.payment_state_history h WHERE h.payment_id ="
                                   " o.payment_id AND published_sequence > 0)"),
                     0);
}

static void wait_blocked(struct world *world)
{
    int64_t until_us = pay_clock_mono_us() + DEADLINE_US;
    while (number(world, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                         " AND wait_event_type = 'Lock'") == 0) {
        assert_true(pay_clock_mono_us() < until_us);
        (void)poll(NULL, 0, 5);
    }
}

/* The version moves between reading and compare-and-set: read and decided again, at once. */
static void U1_a_payment_that_moved_is_decided_again(void **state)
{
    struct world *world = *state;
    struct racer racer = {.world = world, .worker = world->worker};
    struct pay_pg *other = NULL;
    const struct pay_pg_options options = {.conninfo = world->db.conninfo};
    add_create(world, P);
    turn(world);
    world_must(world, pay_pg_open(&options, &other, &world->err));
    world_must(world, pay_pg_script(other, "BEGIN", &world->err));
    world_must(world, pay_pg_script(other,
                                    "UPDATE payfact.payment_order SET version = version + 1,"
                                    " event_sequence = event_sequence + 10",
                                    &world->err));
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    racer.msgs[0] = world->msgs[0];
    racer.count = world->count;
    world->count = 0;
    assert_int_equal(pthread_create(&racer.thread, NULL, race, &racer), 0);
    wait_blocked(world);
    world_must(world, pay_pg_script(other, "COMMIT", &world->err));
    assert_int_equal(pthread_join(racer.thread, NULL), 0);
    assert_int_equal(racer.status, PAY_OK);
    (void)pay_pg_free(other); /* always NULL */
    assert_int_equal(world->waits, 0);
    assert_int_equal(number(world, "SELECT version FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     3);
    /* Nothing of the first decision was kept: its numbers are those of the second reading. */
    assert_int_equal(number(world, "SELECT published_sequence FROM payfact.payment_state_history"
                                   " WHERE published_event_id LIKE 'PaymentSucceeded/%'"),
                     15);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                                   " event_type = 'SUC'"),
                     2);
}

/* The gate is passed while we decide to close it: the batch is rolled back and decided again. */
static void U3_a_gate_that_was_passed_meanwhile_is_closed_as_sent(void **state)
{
    struct world *world = *state;
    struct racer racer = {.world = world, .worker = world->worker};
    struct pay_pg *other = NULL;
    const struct pay_pg_options options = {.conninfo = world->db.conninfo};
    struct pay_command cancel = create_command(P);
    cancel.command_id = PAY_STR("cancel-1");
    cancel.type = PAY_CMD_CANCEL_PAYMENT;
    cancel.reason_code = PAY_STR("REQUESTED");
    add_create(world, P);
    turn(world);
    world_must(world, pay_pg_open(&options, &other, &world->err));
    world_must(world, pay_pg_script(other, "BEGIN", &world->err));
    world_must(world, pay_pg_script(other,
                                    "UPDATE payfact.psp_request SET sending_at = now(),"
                                    " last_send_at = now(), sent_by = 'x', sends = 1",
                                    &world->err));
    add_command(world, &cancel, world->shop, "shop-a");
    racer.msgs[0] = world->msgs[0];
    racer.count = world->count;
    world->count = 0;
    assert_int_equal(pthread_create(&racer.thread, NULL, race, &racer), 0);
    wait_blocked(world);
    world_must(world, pay_pg_script(other, "COMMIT", &world->err));
    assert_int_equal(pthread_join(racer.thread, NULL), 0);
    assert_int_equal(racer.status, PAY_OK);
    (void)pay_pg_free(other); /* always NULL */
    assert_int_equal(world->waits, 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.psp_request WHERE closed_at IS NOT"
                                   " NULL AND sending_at IS NOT NULL"),
                     1);
    /* It may have been sent: neither it nor the order is CANCELED on our own word. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'CANCELED'"),
                     0);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.payment_order WHERE intent = 'CANCEL'"), 1);
}

/* A payment that loses its compare-and-set wrote nothing: its gate stays as it was too. */
static void a_payment_that_lost_closes_no_gate(void **state)
{
    struct world *world = *state;
    struct racer racer = {.world = world, .worker = world->worker};
    struct pay_pg *other = NULL;
    const struct pay_pg_options options = {.conninfo = world->db.conninfo};
    struct pay_command cancel = create_command(P);
    cancel.command_id = PAY_STR("cancel-1");
    cancel.type = PAY_CMD_CANCEL_PAYMENT;
    cancel.reason_code = PAY_STR("REQUESTED");
    add_create(world, P);
    turn(world);
    world_must(world, pay_pg_open(&options, &other, &world->err));
    world_must(world, pay_pg_script(other, "BEGIN", &world->err));
    world_must(world, pay_pg_script(other,
                                    "UPDATE payfact.payment_order SET version = version + 1,"
                                    " status = 'FAILED', reason_code = 'DECLINED';"
                                    "UPDATE payfact.payment_attempt SET live = false,"
                                    " status = 'FAILED'",
                                    &world->err));
    add_command(world, &cancel, world->shop, "shop-a");
    racer.msgs[0] = world->msgs[0];
    racer.count = world->count;
    world->count = 0;
    assert_int_equal(pthread_create(&racer.thread, NULL, race, &racer), 0);
    wait_blocked(world);
    world_must(world, pay_pg_script(other, "COMMIT", &world->err));
    assert_int_equal(pthread_join(racer.thread, NULL), 0);
    assert_int_equal(racer.status, PAY_OK);
    (void)pay_pg_free(other); /* always NULL */
    /* Decided once more, from what is there now: there is nothing to withdraw. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE command_id ="
                                   " 'cancel-1'"),
                     1);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.payment_order WHERE intent = 'CANCEL'"), 0);
    assert_int_equal(
        number(world, "SELECT count(*) FROM payfact.psp_request WHERE closed_at IS NOT NULL"), 0);
}

static void add_continue(struct world *world, const char *command_id)
{
    static char attempt[PAY_ACTION_ID_SIZE];
    struct pay_command command = create_command(P);
    pay_id_action(attempt, P, 'A', 1);
    command.command_id = pay_str_of(command_id);
    command.type = PAY_CMD_CONTINUE_ATTEMPT;
    command.attempt_id = pay_str_of(attempt);
    add_command(world, &command, world->shop, "shop-a");
}

/* What a refused command brings must never reach a CONFIRM. */
static void only_an_accepted_continue_keeps_its_redirect_data(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    add_continue(world, "continue-1"); /* no action is open */
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE command_id ="
                                   " 'continue-1' AND status = 'REJECTED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.attempt_redirect"), 0);

    add_callback(world, P, PAY_EV_ATTEMPT_ACTION_REQUIRED, "evt_1");
    turn(world);
    add_continue(world, "continue-2");
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE command_id ="
                                   " 'continue-2' AND status = 'ACCEPTED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.attempt_redirect"), 1);
}

/* Nothing that one payment's inputs say may hold up the others: not even the same name twice. */
static void two_payments_that_bind_one_reference_in_one_batch(void **state)
{
    struct world *world = *state;
    const char *other = payment_id(1);
    char business[PAY_BUSINESS_KEY_SIZE];
    add_create(world, P);
    add_create(world, other);
    turn(world);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    struct pay_payment_input second = callback(other, PAY_EV_ATTEMPT_SUCCEEDED, "evt_2");
    second.event.provider_payment_id = pay_str_of("pi_01ARZ3NDEKTSV4RRFFQ69G5A00");
    second.event.references[0].reference = second.event.provider_payment_id;
    assert_true(pay_business_key(business, &second.event));
    second.business_key = pay_str_of(business);
    add_input(world, &second, other);
    world->waits_max = 30; /* gives up: it would go on for ever */
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.attempt_reference"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event"), 2);
    assert_int_equal(world->letter_count, 0);
}

static void a_lost_connection_is_made_again(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    pay_testdb_run(&world->db,
                   "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname"
                   " = current_database() AND pid <> pg_backend_pid()");
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    assert_true(world->waits >= 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1);
}

static void a_missing_partition_is_waited_for_and_never_poison(void **state)
{
    struct world *world = *state;
    world->waits_max = 3;
    pay_testdb_run(&world->db,
                   "DO $$ DECLARE t text; BEGIN FOR t IN SELECT inhrelid::regclass::text FROM"
                   " pg_inherits WHERE inhparent = 'payfact.payment_state_history'::regclass LOOP"
                   " EXECUTE 'ALTER TABLE payfact.payment_state_history DETACH PARTITION ' || t;"
                   " END LOOP; END $$");
    add_create(world, P);
    assert_int_equal(turn_with(world, world->worker), PAY_RETRY);
    assert_int_equal(world->letter_count, 0);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 0);
}

static void a_dead_letter_that_is_too_large_goes_without_its_value(void **state)
{
    struct world *world = *state;
    size_t len = PAY_DEAD_LETTER_BYTES_MAX - 200;
    char *junk = calloc(1, len);
    assert_non_null(junk);
    add_bytes(world, "k", junk, len);
    free(junk);
    turn(world);
    assert_int_equal(world->letter_count, 1);
    struct pay_dead_letter letter;
    world_must(world, pay_dead_letter_decode(world->codec, world->letters[0], world->arena, &letter,
                                             &world->err));
    assert_int_equal(letter.sealed_value.ciphertext.len, 0);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.channel_event WHERE status ="
                                   " 'DEAD' AND body IS NOT NULL"),
                     1);
}

/* The next batch's offsets would be committed past it. */
static void a_batch_is_given_up_only_while_draining(void **state)
{
    struct world *world = *state;
    world->waits_max = 1;
    world->refuse_letters = true;
    add_bytes(world, "k", "junk", 4);
    assert_int_equal(turn_with(world, world->worker), PAY_RETRY);
    assert_int_equal(pay_worker_outcome(PAY_RETRY, true, &world->err), PAY_OK);
    assert_int_equal(pay_worker_outcome(PAY_RETRY, false, &world->err), PAY_FATAL);
    assert_non_null(strstr(world->err.text, "not acknowledged"));
    assert_int_equal(pay_worker_outcome(PAY_OK, false, &world->err), PAY_OK);
    assert_int_equal(pay_worker_outcome(PAY_REJECT, true, &world->err), PAY_REJECT);
}

#if PAY_FAULTS
/* kill -9 at a named point, in a process of its own; then the same record again. */
static void crash_at(struct world *world, const char *point)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setenv("PAYFACT_FAULT", point, 1);
        struct pay_worker *worker = world_worker(world);
        (void)turn_with(world, worker);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}
#endif

static void a_crash_before_commit_leaves_nothing(void **state)
{
#if PAY_FAULTS
    struct world *world = *state;
    add_create(world, P);
    crash_at(world, "before_commit");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 0);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order"), 1);
#else
    (void)state;
    skip();
#endif
}

static void Q1_K9_a_crash_after_commit_decides_nothing_twice(void **state)
{
#if PAY_FAULTS
    struct world *world = *state;
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    size_t count = world->count;
    crash_at(world, "after_commit");
    int64_t history = number(world, "SELECT count(*) FROM payfact.payment_state_history");
    assert_true(history > 0);
    world->count = count;
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_state_history"), history);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED' AND version = 1"),
                     1);
#else
    (void)state;
    skip();
#endif
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_create_makes_order_attempt_gate_job_and_events),
        TEST(the_job_carries_the_routes_sealed_parameters),
        TEST(a_success_settles_the_order_once),
        TEST(D1_D5_five_copies_are_one_event),
        TEST(a_whole_payment_in_one_batch_is_one_version),
        TEST(a_repeated_command_is_answered_as_before),
        TEST(D11_other_content_under_a_commands_number_is_refused),
        TEST(the_same_order_number_is_refused_for_another_payment),
        TEST(two_payments_with_one_order_number_in_one_batch),
        TEST(a_command_by_a_wrong_key_is_dead),
        TEST(a_command_that_is_not_allowed_is_answered),
        TEST(undecodable_bytes_are_kept_sealed_and_the_rest_commits),
        TEST(data_that_the_database_refuses_is_isolated),
        TEST(a_poison_that_comes_again_is_one_case),
        TEST(an_event_that_no_source_may_bring_is_dead),
        TEST(evidence_is_derived_and_not_believed),
        TEST(Q7_an_orphan_waits_and_is_decided_again),
        TEST(Q7_a_repeated_delivery_decides_an_orphan_too),
        TEST(an_orphan_is_given_up_when_its_budget_is_spent),
        TEST(somebody_elses_event_is_recorded_as_foreign),
        TEST(an_event_without_our_number_is_found_by_its_reference),
        TEST(A13_a_wrong_amount_moves_nothing_and_opens_a_case),
        TEST(a_paused_route_gets_no_attempt),
        TEST(a_discarded_event_is_withheld_under_its_number),
        TEST(an_old_deadline_changes_nothing),
        TEST(two_workers_on_the_same_payments_lose_nothing),
        TEST(U1_a_payment_that_moved_is_decided_again),
        TEST(U3_a_gate_that_was_passed_meanwhile_is_closed_as_sent),
        TEST(a_payment_that_lost_closes_no_gate),
        TEST(only_an_accepted_continue_keeps_its_redirect_data),
        TEST(two_payments_that_bind_one_reference_in_one_batch),
        TEST(a_lost_connection_is_made_again),
        TEST(a_missing_partition_is_waited_for_and_never_poison),
        TEST(a_dead_letter_that_is_too_large_goes_without_its_value),
        TEST(a_batch_is_given_up_only_while_draining),
        TEST(a_crash_before_commit_leaves_nothing),
        TEST(Q1_K9_a_crash_after_commit_decides_nothing_twice),
    };
    return cmocka_run_group_tests_name("integration.processor", tests, NULL, NULL);
}

/* NOLINTEND(concurrency-mt-unsafe) */
