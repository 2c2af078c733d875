/* SPDX-License-Identifier: Apache-2.0 */
/* Captures, refunds, disputes and what two people decide, through the processor's transaction into
 * a real database: rows, amounts, gates, jobs and events of each turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/contracts/keys.h"
#include "common/core/id.h"
#include "tests/integration/processor/world.h"

#define P payment_id(0)
#define Q payment_id(1)

/* ---- what goes in ---- */

static struct pay_command money_command(const char *payment, enum pay_command_type type,
                                        const char *command_id, int64_t amount)
{
    return (struct pay_command){
        .command_id = pay_str_of(command_id),
        .type = type,
        .caller = PAY_STR("shop"),
        .merchant_id = PAY_STR("acme"),
        .payment_id = pay_str_of(payment),
        .issued_at_us = 1,
        .money = {.amount = {.amount_minor = amount, .currency = "EUR"},
                  .is_final = true,
                  .reason_code = PAY_STR("requested_by_customer")},
    };
}

static void add_money(struct world *world, const char *payment, enum pay_command_type type,
                      const char *command_id, int64_t amount)
{
    const struct pay_command command = money_command(payment, type, command_id, amount);
    add_command(world, &command, world->shop, "shop-a");
}

static void add_refund(struct world *world, const char *command_id, int64_t amount)
{
    add_money(world, P, PAY_CMD_REQUEST_REFUND, command_id, amount);
}

struct told {
    enum pay_event_type type;
    const char *action_id; /* Ours; NULL: the PSP does not repeat it. */
    const char *name;      /* The PSP's of the action. */
    int64_t amount;
    const char *key; /* Transport key. */
    enum pay_source source;
    const char *job_id;
    int64_t asked_at_us; /* 0: in the year 2096, after everything. */
};

static void add_told(struct world *world, const char *payment, const struct told *told)
{
    static char business[PAY_BUSINESS_KEY_SIZE];
    struct pay_payment_input input = callback(payment, told->type, told->key);
    input.source = told->source;
    input.event.action_id = pay_str_of(told->action_id);
    input.event.provider_action_id = pay_str_of(told->name);
    input.event.has_amount = told->amount > 0;
    input.event.amount.amount_minor = told->amount;
    if (told->job_id != NULL) {
        input.event.call = (struct pay_call){
            .is_set = true,
            .job_id = pay_str_of(told->job_id),
            .send_no = 1,
            .query_by =
                told->source == PAY_SOURCE_QUERY ? PAY_QUERY_BY_PSP_REFERENCE : PAY_QUERY_BY_NONE,
            .asked_at_us = told->asked_at_us != 0 ? told->asked_at_us : INT64_C(4000000000000000)};
        input.evidence = (struct pay_sealed_evidence){.ciphertext = {NULL, 0}};
    }
    assert_true(pay_business_key(business, &input.event));
    input.business_key = pay_str_of(business);
    add_input(world, &input, payment);
}

static void tell_of(struct world *world, const char *payment, enum pay_event_type type,
                    const char *action_id, const char *name, int64_t amount, const char *key)
{
    const struct told told = {type, action_id, name, amount, key, PAY_SOURCE_WEBHOOK, NULL, 0};
    add_told(world, payment, &told);
}

static void tell(struct world *world, enum pay_event_type type, const char *action_id,
                 const char *name, int64_t amount, const char *key)
{
    tell_of(world, P, type, action_id, name, amount, key);
}

static const char *action(const char *payment, char letter, int no)
{
    static char ids[8][PAY_ACTION_ID_SIZE];
    static int at;
    char *id = ids[at++ % 8];
    pay_id_action(id, payment, letter, no);
    return id;
}

static const char *R(int no)
{
    return action(P, 'R', no);
}

static const char *job_of(const char *action_id, const char *rest)
{
    static char id[PAY_JOB_ID_SIZE];
    (void)snprintf(id, sizeof(id), "%s.%s", action_id, rest);
    return id;
}

static void pay_for(struct world *world, const char *payment)
{
    char key[64];
    (void)snprintf(key, sizeof(key), "evt_paid_%s", payment);
    add_create(world, payment);
    add_callback(world, payment, PAY_EV_ATTEMPT_SUCCEEDED, key);
    turn(world);
}

/* The row's present due time, as recovery would have read it. */
static void add_due(struct world *world, const char *payment, enum pay_deadline_kind kind,
                    const char *aggregate_id)
{
    char sql[512], key[PAY_TRANSPORT_KEY_SIZE];
    const char *name = pay_deadline_kind_name(kind);
    (void)snprintf(sql, sizeof(sql),
                   "SELECT (extract(epoch FROM due_at) * 1000000)::int8 FROM"
                   " payfact.payment_deadline WHERE kind = '%s' AND aggregate_id = '%s'",
                   name, aggregate_id);
    const int64_t due_at_us = number(world, sql);
    assert_true(
        pay_transport_key_deadline(key, pay_str_of(name), pay_str_of(aggregate_id), due_at_us));
    const struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_DEADLINE,
        .source = PAY_SOURCE_LOCAL,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = pay_str_of(payment),
        .transport_key = pay_str_of(key),
        .deadline = {pay_str_of(name), pay_str_of(aggregate_id), due_at_us},
        .received_at_us = 1,
    };
    add_input(world, &input, payment);
}

/* ---- what comes out ---- */

static void expect_amounts(struct world *world, const char *expected)
{
    assert_string_equal(
        pay_testdb_text(&world->db,
                        "SELECT concat_ws(' ', 'authorized', authorized_minor, 'capture_reserved',"
                        " capture_reserved_minor, 'captured', captured_minor, 'refund_reserved',"
                        " refund_reserved_minor, 'refunded', refunded_minor, 'withdrawn',"
                        " withdrawn_minor) FROM payfact.payment_amount ORDER BY attempt_id"
                        " LIMIT 1"),
        expected);
}

static void expect_paid(struct world *world, int64_t reserved, int64_t refunded)
{
    char text[256];
    (void)snprintf(text, sizeof(text),
                   "authorized 100 capture_reserved 0 captured 100 refund_reserved %lld refunded"
                   " %lld withdrawn 0",
                   (long long)reserved, (long long)refunded);
    expect_amounts(world, text);
}

static const char *refunds(struct world *world)
{
    return pay_testdb_text(&world->db,
                           "SELECT string_agg(right(refund_id, 3) || ' ' || status, ', ' ORDER BY"
                           " refund_id) FROM payfact.refund_order");
}

static const char *answer_of(struct world *world, const char *command_id)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT status || ' ' || coalesce(reason_code, '') FROM payfact.command WHERE"
                   " command_id = '%s'",
                   command_id);
    return pay_testdb_text(&world->db, sql);
}

/* How often a kind of event was published. */
static int64_t count_of(struct world *world, const char *type)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM payfact.payment_state_history WHERE published_event_id"
                   " LIKE '%s/%%'",
                   type);
    return number(world, sql);
}

/* Every number once, none left out: whatever was decided. */
static void expect_gapless(struct world *world)
{
    assert_int_equal(number(world, "SELECT count(*) FROM (SELECT payment_id FROM"
                                   " payfact.payment_state_history WHERE published_sequence > 0"
                                   " GROUP BY payment_id HAVING count(*) <> max(published_sequence)"
                                   " OR max(published_sequence) <> (SELECT event_sequence FROM"
                                   " payfact.payment_order o WHERE o.payment_id ="
                                   " payment_state_history.payment_id)) AS x"),
                     0);
}

static struct pay_psp_job job(struct world *world, const char *job_id)
{
    static char sql[512], hex[16384];
    static uint8_t bytes[8192];
    struct pay_psp_job record;
    (void)snprintf(sql, sizeof(sql),
                   "SELECT encode(o.payload, 'hex') FROM payfact.payment_outbox o WHERE topic ="
                   " 'psp-jobs' AND position('%s'::bytea IN o.payload) > 0 AND"
                   " (get_byte(o.payload, position('%s'::bytea IN o.payload) + %zu - 1) <> 46)"
                   " ORDER BY id DESC LIMIT 1",
                   job_id, job_id, strlen(job_id));
    (void)snprintf(hex, sizeof(hex), "%s", pay_testdb_text(&world->db, sql));
    const size_t len = strlen(hex) / 2;
    assert_true(len > 0 && pay_hex_decode(pay_str_of(hex), bytes, len));
    world_must(world, pay_psp_job_decode(world->codec, (struct pay_bytes){bytes, len}, world->arena,
                                         &record, &world->err));
    assert_true(pay_str_eq_c(record.job_id, job_id));
    return record;
}

/* ---- refunds ---- */

static void A1_two_refunds_of_70_on_100_at_once_are_one_reserved_and_one_refused(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    add_refund(world, "r-2", 70);
    add_refund(world, "r-3", -5);
    add_refund(world, "r-4", 0);
    turn(world);
    assert_string_equal(refunds(world), "R01 CREATED");
    expect_paid(world, 70, 0);
    assert_string_equal(answer_of(world, "r-1"), "ACCEPTED ACCEPTED");
    assert_string_equal(answer_of(world, "r-2"), "REJECTED EXCEEDS_REFUNDABLE");
    assert_string_equal(answer_of(world, "r-3"), "REJECTED INVALID_AMOUNT");
    assert_string_equal(answer_of(world, "r-4"), "REJECTED INVALID_AMOUNT");
    /* The gate is passed with the digest of exactly the bytes that go out. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.psp_request g JOIN"
                                   " payfact.payment_outbox o ON o.topic = 'psp-jobs' AND"
                                   " g.digest = sha256(o.payload) WHERE g.kind = 'REFUND' AND"
                                   " g.job_id LIKE '%R01.REFUND' AND g.sending_at IS NULL"),
                     1);
    const struct pay_psp_job record = job(world, job_of(R(1), "REFUND"));
    assert_int_equal(record.kind, PAY_JOB_REFUND);
    assert_int_equal(record.amount_minor, 70);
    assert_int_equal(record.attempt_amount_minor, 100);
    assert_true(pay_str_eq_c(record.request_no, R(1)) && pay_str_eq_c(record.action_id, R(1)));
    assert_true(pay_str_eq_c(record.attempt_id, action(P, 'A', 1)));
    assert_true(pay_str_eq_c(record.reason_code, "requested_by_customer"));
    assert_true(record.provider_reference.len > 3 && record.try_no == 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline WHERE"
                                   " aggregate_id LIKE '%R01' AND kind IN ('SEND', 'RESERVATION')"),
                     2);
    expect_gapless(world);
}

/* The same, decided by two processors on what each has read. */
static void A1_two_refunds_by_two_processors_are_one_reserved_and_one_refused(void **state)
{
    struct world *world = *state;
    struct pay_worker *second = world_worker(world);
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    add_refund(world, "r-2", 70);
    world_must(world, turn_with(world, second));
    second = pay_worker_close(second);
    assert_null(second);
    assert_string_equal(refunds(world), "R01 CREATED");
    assert_string_equal(answer_of(world, "r-2"), "REJECTED EXCEEDS_REFUNDABLE");
    expect_paid(world, 70, 0);
}

/* Rows that no decision wrote: their input is given up with a case, another payment's goes on. */
static void reservations_that_no_action_holds_stop_their_own_payment_only(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    pay_for(world, Q);
    pay_testdb_run(&world->db, "ALTER TABLE payfact.payment_amount DISABLE TRIGGER USER;"
                               " UPDATE payfact.payment_amount SET refund_reserved_minor = 5"
                               " WHERE payment_id = (SELECT min(payment_id) FROM"
                               " payfact.payment_order)");
    add_refund(world, "r-1", 70);
    add_money(world, Q, PAY_CMD_REQUEST_REFUND, "r-2", 70);
    turn(world);
    assert_string_equal(refunds(world), "R01 CREATED");
    assert_string_equal(answer_of(world, "r-2"), "ACCEPTED ACCEPTED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case WHERE kind ="
                                   " 'DEAD_INPUT' AND status = 'OPEN'"),
                     1);
}

static void D7_K9_a_refund_told_many_times_is_booked_once(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 30);
    turn(world);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 30, "evt_r1");
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 30, "evt_r1");
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 30, "evt_r2");
    turn(world);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 30, "evt_r1");
    tell(world, PAY_EV_REFUND_SUCCEEDED, NULL, "re_1", 30, "evt_r3");
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    expect_paid(world, 0, 30);
    assert_int_equal(count_of(world, "RefundSucceeded"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.refund_order WHERE"
                                   " provider_reference = 're_1' AND version = 2"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED'"),
                     1); /* A refund's success is not a payment's failure. */
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_deadline WHERE"
                                   " aggregate_id LIKE '%R01'"),
                     0);
    expect_gapless(world);
}

static void K9_a_refund_command_repeated_makes_one_refund(void **state)
{
    struct world *world = *state;
    struct pay_command command = money_command(P, PAY_CMD_REQUEST_REFUND, "r-1", 30);
    pay_for(world, P);
    add_command(world, &command, world->shop, "shop-a");
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    command.command_id = PAY_STR("r-2"); /* The merchant's own number stays, the command is new. */
    command.money.idempotency_key = PAY_STR("credit-note-7");
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    command.command_id = PAY_STR("r-3");
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    command.command_id = PAY_STR("r-4");
    command.money.amount.amount_minor = 31;
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    assert_string_equal(refunds(world), "R01 CREATED, R02 CREATED");
    assert_string_equal(answer_of(world, "r-3"), "ACCEPTED ALREADY_ACCEPTED");
    assert_string_equal(answer_of(world, "r-4"), "REJECTED IDEMPOTENCY_CONFLICT");
    expect_paid(world, 60, 0);
}

static void a_merchants_number_is_one_actions_over_all_payments(void **state)
{
    struct world *world = *state;
    struct pay_command command = money_command(P, PAY_CMD_REQUEST_REFUND, "r-1", 30);
    command.money.idempotency_key = PAY_STR("credit-note-7");
    pay_for(world, P);
    pay_for(world, Q);
    add_command(world, &command, world->shop, "shop-a");
    command.command_id = PAY_STR("r-2");
    command.payment_id = pay_str_of(Q);
    add_command(world, &command, world->shop, "shop-a"); /* In the same batch ... */
    turn(world);
    command.command_id = PAY_STR("r-3");
    add_command(world, &command, world->shop, "shop-a"); /* ... and later. */
    turn(world);
    assert_string_equal(answer_of(world, "r-1"), "ACCEPTED ACCEPTED");
    assert_string_equal(answer_of(world, "r-2"), "REJECTED IDEMPOTENCY_KEY_TAKEN");
    assert_string_equal(answer_of(world, "r-3"), "REJECTED IDEMPOTENCY_KEY_TAKEN");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.refund_order"), 1);
}

static void a_refused_refund_releases_its_reservation(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    tell(world, PAY_EV_REFUND_FAILED, R(1), "re_1", 70, "evt_r1");
    turn(world);
    assert_string_equal(refunds(world), "R01 FAILED");
    expect_paid(world, 0, 0);
    assert_int_equal(count_of(world, "RefundFailed"), 1);
    add_refund(world, "r-2", 100);
    turn(world);
    expect_paid(world, 100, 0);
}

/* A time-out keeps the reservation; a question finds out. */
static void an_unknown_refund_keeps_its_reservation_and_is_asked_about(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET sending_at = now(), sent_by = 'x',"
                               " sends = 1, last_send_at = now() WHERE kind = 'REFUND'");
    const char *sent = job_of(R(1), "REFUND");
    struct told told = {.type = PAY_EV_REFUND_UNKNOWN,
                        .action_id = R(1),
                        .key = "unk",
                        .source = PAY_SOURCE_LOCAL,
                        .job_id = sent};
    add_told(world, P, &told);
    turn(world);
    assert_string_equal(refunds(world), "R01 UNKNOWN");
    expect_paid(world, 70, 0);
    add_due(world, P, PAY_DEADLINE_QUERY, R(1));
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_outbox WHERE topic ="
                                   " 'psp-jobs' AND position('QUERY_REFUND'::bytea IN payload) > 0"
                                   " OR position('R01.QUERY'::bytea IN payload) > 0"),
                     1);
    add_refund(world, "r-2", 40); /* What may have been paid back is not given twice. */
    turn(world);
    assert_string_equal(answer_of(world, "r-2"), "REJECTED EXCEEDS_REFUNDABLE");
    told = (struct told){PAY_EV_REFUND_SUCCEEDED,  R(1), "re_1", 70, "query-1", PAY_SOURCE_QUERY,
                         job_of(R(1), "QUERY.v9"), 0};
    add_told(world, P, &told);
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    expect_paid(world, 0, 70);
}

static void a_refund_that_fails_after_it_succeeded_gives_back_what_was_refunded(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 70, "evt_r1");
    turn(world);
    expect_paid(world, 0, 70);
    tell(world, PAY_EV_REFUND_FAILED, R(1), "re_1", 70, "evt_r2");
    turn(world);
    expect_paid(world, 0, 70); /* A callback alone: asked first. */
    const struct told told = {
        PAY_EV_REFUND_FAILED,     R(1), "re_1", 70, "query-1", PAY_SOURCE_QUERY,
        job_of(R(1), "QUERY.v9"), 0};
    add_told(world, P, &told);
    turn(world);
    assert_string_equal(refunds(world), "R01 REVERSED");
    expect_paid(world, 0, 0);
    assert_int_equal(count_of(world, "RefundReversed"), 1);
    expect_gapless(world);
}

/* Closed unsent and sent again: the next job id and its row, in the transaction that closes the
 * former. */
/* The answer was asked for before the callback that raised the question: with it in one batch or
 * after it, it is no answer. */
static void an_older_answer_ends_no_question(void **state)
{
    struct world *world = *state;
    static const char rows[] = "SELECT count(*) FROM payfact.payment_deadline"
                               " WHERE kind IN ('QUERY', 'MANUAL')";
    struct told told = {.type = PAY_EV_REFUND_SUCCEEDED,
                        .action_id = R(1),
                        .name = "re_1",
                        .amount = 70,
                        .source = PAY_SOURCE_QUERY,
                        .job_id = job_of(R(1), "QUERY.v9"),
                        .asked_at_us = 1};

    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 70, "evt_done");
    turn(world);
    tell(world, PAY_EV_REFUND_FAILED, R(1), "re_1", 70, "evt_failed");
    told.key = "query-1";
    add_told(world, P, &told);
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    assert_int_equal(number(world, rows), 2);
    told.key = "query-2";
    add_told(world, P, &told);
    turn(world);
    assert_int_equal(number(world, rows), 2);
    told.key = "query-3";
    told.asked_at_us = 0;
    add_told(world, P, &told);
    turn(world);
    assert_int_equal(number(world, rows), 0);
}

static void a_refund_that_was_never_sent_goes_again_behind_the_next_gate(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    pay_testdb_run(&world->db, "UPDATE payfact.psp_request SET not_after = now() - interval"
                               " '1 minute' WHERE kind = 'REFUND'");
    add_due(world, P, PAY_DEADLINE_SEND, R(1));
    turn(world);
    assert_string_equal(
        pay_testdb_text(&world->db,
                        "SELECT string_agg(right(job_id, -29) || CASE WHEN closed_at IS NULL THEN"
                        " ' open' ELSE ' closed' END, ', ' ORDER BY job_id) FROM"
                        " payfact.psp_request WHERE kind = 'REFUND'"),
        ".REFUND closed, .REFUND.2 open");
    const struct pay_psp_job record = job(world, job_of(R(1), "REFUND.2"));
    assert_true(pay_str_eq_c(record.request_no, R(1)) && record.try_no == 1);
    expect_paid(world, 70, 0);
}

static void a_refund_in_the_psps_console_becomes_one_of_ours(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    tell(world, PAY_EV_REFUND_SUCCEEDED, NULL, "re_console", 25, "evt_r1");
    tell(world, PAY_EV_REFUND_SUCCEEDED, NULL, "re_console", 25, "evt_r2");
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.refund_order WHERE origin ="
                                   " 'PSP' AND idempotency_key ="
                                   " 'stripe/stripe-acme/re_console'"),
                     1);
    expect_paid(world, 0, 25);
    /* More than is left does not fit: a case, never dropped, and no further refund meanwhile. */
    tell(world, PAY_EV_REFUND_SUCCEEDED, NULL, "re_more", 80, "evt_r3");
    turn(world);
    expect_paid(world, 0, 25);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.manual_case WHERE kind ="
                                   " 'OVER_REFUND' AND status = 'OPEN'"),
                     1);
    add_refund(world, "r-1", 10);
    turn(world);
    assert_string_equal(answer_of(world, "r-1"), "REJECTED OVER_REFUND");
}

/* ---- captures ---- */

static void authorize(struct world *world)
{
    struct pay_command command = create_command(P);
    command.create_payment.capture_mode = PAY_CAPTURE_MANUAL;
    add_command(world, &command, world->shop, "shop-a");
    add_callback(world, P, PAY_EV_ATTEMPT_AUTHORIZED, "evt_auth");
    turn(world);
    expect_amounts(world, "authorized 100 capture_reserved 0 captured 0 refund_reserved 0 refunded"
                          " 0 withdrawn 0");
}

static void a_partial_capture_reserves_settles_and_releases_the_rest(void **state)
{
    struct world *world = *state;
    authorize(world);
    add_money(world, P, PAY_CMD_CAPTURE, "c-1", 60);
    add_money(world, P, PAY_CMD_CAPTURE, "c-2", 60);
    turn(world);
    expect_amounts(world, "authorized 100 capture_reserved 60 captured 0 refund_reserved 0 refunded"
                          " 0 withdrawn 0");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE command_id = 'c-2'"
                                   " AND status = 'REJECTED'"),
                     1);
    const char *capture = action(P, 'C', 1);
    const struct pay_psp_job record = job(world, job_of(capture, "CAPTURE"));
    assert_true(record.kind == PAY_JOB_CAPTURE && record.is_final && record.amount_minor == 60);
    assert_true(pay_str_eq_c(record.request_no, capture));
    assert_int_equal(record.capture_mode, PAY_CAPTURE_MANUAL);
    tell(world, PAY_EV_CAPTURE_SUCCEEDED, capture, "ch_1", 60, "evt_c1");
    tell(world, PAY_EV_CAPTURE_SUCCEEDED, capture, "ch_1", 60, "evt_c2");
    turn(world);
    expect_amounts(world, "authorized 60 capture_reserved 0 captured 60 refund_reserved 0 refunded"
                          " 0 withdrawn 0");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED' AND paid_attempt_no = 1 AND capture_count = 1"),
                     1);
    assert_int_equal(count_of(world, "CaptureSucceeded"), 1);
    assert_int_equal(count_of(world, "PaymentSucceeded"), 1);
    expect_gapless(world);
}

static void an_authorization_is_voided_by_cancel(void **state)
{
    struct world *world = *state;
    struct pay_command command = money_command(P, PAY_CMD_CANCEL_PAYMENT, "x-1", 0);
    command.reason_code = PAY_STR("abandoned");
    authorize(world);
    add_command(world, &command, world->shop, "shop-a");
    turn(world);
    assert_int_equal(job(world, job_of(action(P, 'A', 1), "CANCEL")).kind, PAY_JOB_CANCEL);
    add_callback(world, P, PAY_EV_ATTEMPT_CANCELED, "evt_can");
    turn(world);
    expect_amounts(world, "authorized 0 capture_reserved 0 captured 0 refund_reserved 0 refunded 0"
                          " withdrawn 0");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'CANCELED'"),
                     1);
}

/* ---- disputes ---- */

static void what_a_dispute_withdraws_comes_back_with_it(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    tell(world, PAY_EV_DISPUTE_OPENED, NULL, "du_1", 100, "evt_d1");
    tell(world, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, NULL, "du_1", 100, "evt_d2");
    tell(world, PAY_EV_DISPUTE_FUNDS_WITHDRAWN, NULL, "du_1", 100, "evt_d3");
    turn(world);
    expect_amounts(world, "authorized 100 capture_reserved 0 captured 100 refund_reserved 0"
                          " refunded 0 withdrawn 100");
    add_refund(world, "r-1", 10); /* It is gone already. */
    turn(world);
    assert_string_equal(answer_of(world, "r-1"), "REJECTED EXCEEDS_REFUNDABLE");
    tell(world, PAY_EV_DISPUTE_WON, NULL, "du_1", 100, "evt_d4");
    tell(world, PAY_EV_DISPUTE_FUNDS_REINSTATED, NULL, "du_1", 100, "evt_d5");
    turn(world);
    expect_paid(world, 0, 0);
    assert_string_equal(pay_testdb_text(&world->db,
                                        "SELECT dispute_id || ' ' || status || ' ' || funds || ' '"
                                        " || withdrawn_minor FROM payfact.dispute"),
                        "01ARZ3NDEKTSV4RRFFQ69G5A00D01 WON REINSTATED 0");
    assert_int_equal(count_of(world, "DisputeOpened"), 1);
    assert_int_equal(count_of(world, "DisputeClosed"), 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE status ="
                                   " 'SUCCEEDED' AND dispute_count = 1"),
                     1);
    expect_gapless(world);
}

/* ---- two people ---- */

static uint8_t digest[32];

static struct pay_bytes digest_of(struct world *world, const char *request_id)
{
    char sql[256];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT encode(sha256, 'hex') FROM payfact.approval_request WHERE request_id ="
                   " '%s'",
                   request_id);
    assert_true(pay_hex_decode(pay_str_of(pay_testdb_text(&world->db, sql)), digest, 32));
    return (struct pay_bytes){digest, 32};
}

static void add_word(struct world *world, int who, const char *command_id, const char *request_id,
                     enum pay_command_type type)
{
    static const char *const names[] = {"operator-1", "operator-2", "operator-3"};
    static const char *const keys[] = {"operator-1-a", "operator-2-a", "operator-3-a"};
    const struct pay_ed25519_private *const private[] = {world->operator_1, world->operator_2,
                                                         world->operator_3};
    const struct pay_command command = {
        .command_id = pay_str_of(command_id),
        .type = type,
        .caller = pay_str_of(names[who - 1]),
        .merchant_id = PAY_STR("acme"),
        .payment_id = pay_str_of(P),
        .issued_at_us = 1,
        .approval = {pay_str_of(request_id), digest_of(world, request_id), PAY_STR("SEEN")},
    };
    add_command(world, &command, private[who - 1], keys[who - 1]);
}

static void a_refund_beyond_the_threshold_waits_for_two_people(void **state)
{
    struct world *world = *state;
    struct pay_command create = create_command(P);
    create.create_payment.amount.amount_minor = 500;
    add_command(world, &create, world->shop, "shop-a");
    tell(world, PAY_EV_ATTEMPT_SUCCEEDED, NULL, NULL, 500, "evt_paid");
    turn(world);
    add_refund(world, "r-1", 151);
    turn(world);
    assert_string_equal(answer_of(world, "r-1"), "AWAITING_APPROVAL AWAITING_APPROVAL");
    assert_int_equal(number(world, "SELECT refund_reserved_minor FROM payfact.payment_amount"),
                     151);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.psp_request WHERE kind ="
                                   " 'REFUND'"),
                     0); /* Neither job nor gate before the second word. */
    add_word(world, 1, "a-1", "shop/r-1", PAY_CMD_APPROVE);
    turn(world);
    add_word(world, 1, "a-2", "shop/r-1", PAY_CMD_APPROVE); /* The same person is one person. */
    turn(world);
    assert_string_equal(answer_of(world, "a-2"), "REJECTED ALREADY_COUNTED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.approval"), 1);
    add_word(world, 2, "a-3", "shop/r-1", PAY_CMD_APPROVE);
    turn(world);
    assert_string_equal(answer_of(world, "a-3"), "ACCEPTED APPROVED");
    assert_string_equal(refunds(world), "R01 CREATED");
    assert_int_equal(job(world, job_of(R(1), "REFUND")).amount_minor, 151);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.approval_request WHERE status ="
                                   " 'APPROVED' AND aggregate_id LIKE '%R01'"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.refund_day"), 0);
    /* Declined: withdrawn, nothing was ever sent. */
    add_refund(world, "r-2", 151);
    turn(world);
    add_word(world, 3, "a-4", "shop/r-2", PAY_CMD_DECLINE);
    turn(world);
    assert_string_equal(refunds(world), "R01 CREATED, R02 CANCELED");
    assert_int_equal(number(world, "SELECT refund_reserved_minor FROM payfact.payment_amount"),
                     151);
    /* Expired: the same. */
    add_refund(world, "r-3", 151);
    turn(world);
    pay_testdb_run(&world->db, "ALTER TABLE payfact.approval_request DISABLE TRIGGER USER; UPDATE"
                               " payfact.approval_request SET expires_at = now() - interval '1 s'"
                               " WHERE status = 'PENDING'; ALTER TABLE payfact.approval_request"
                               " ENABLE TRIGGER USER");
    add_due(world, P, PAY_DEADLINE_APPROVAL, "shop/r-3");
    turn(world);
    assert_string_equal(refunds(world), "R01 CREATED, R02 CANCELED, R03 CANCELED");
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.approval_request WHERE status ="
                                   " 'EXPIRED' AND decided_at IS NOT NULL"),
                     1);
    expect_gapless(world);
}

/* The day is the merchant's, not a payment's: also within one batch. */
static void refunds_of_one_day_wait_once_their_sum_passes_the_threshold(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    pay_for(world, Q);
    pay_for(world, payment_id(2));
    add_refund(world, "r-1", 90);
    add_money(world, Q, PAY_CMD_REQUEST_REFUND, "r-2", 90);
    add_money(world, payment_id(2), PAY_CMD_REQUEST_REFUND, "r-3", 90);
    turn(world);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.command WHERE status ="
                                   " 'AWAITING_APPROVAL'"),
                     1);
    assert_int_equal(number(world, "SELECT amount_minor FROM payfact.refund_day WHERE merchant_id"
                                   " = 'acme' AND currency = 'EUR'"),
                     180);
    add_refund(world, "r-4", 10);
    turn(world);
    assert_string_equal(answer_of(world, "r-4"), "ACCEPTED ACCEPTED");
    assert_int_equal(number(world, "SELECT amount_minor FROM payfact.refund_day"), 190);
}

static struct pay_command correction(struct world *world, const char *command_id)
{
    return (struct pay_command){
        .command_id = pay_str_of(command_id),
        .type = PAY_CMD_CORRECT_STATE,
        .caller = PAY_STR("operator-1"),
        .merchant_id = PAY_STR("acme"),
        .payment_id = pay_str_of(P),
        .issued_at_us = 1,
        .controlled = {.aggregate_id = pay_str_of(R(1)),
                       .expected_version = number(world, "SELECT version FROM"
                                                         " payfact.refund_order"),
                       .from_status = PAY_STR("CREATED"),
                       .to_status = PAY_STR("FAILED"),
                       .reason_code = PAY_STR("PSP_CONFIRMED"),
                       .attachments = {{PAY_STR("mail \"1\""),
                                        {(const uint8_t *)"01234567890123456789012345678901", 32}}},
                       .attachment_count = 1},
    };
}

static void a_correction_needs_two_others_and_the_row_as_it_was(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    struct pay_command command = correction(world, "c-1");
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);
    assert_string_equal(answer_of(world, "c-1"), "AWAITING_APPROVAL AWAITING_APPROVAL");
    assert_string_equal(pay_testdb_text(&world->db, "SELECT attachments->0->>'reference' FROM"
                                                    " payfact.approval_request"),
                        "mail \"1\"");
    add_word(world, 1, "a-1", "operator-1/c-1", PAY_CMD_APPROVE); /* His own. */
    add_word(world, 2, "a-2", "operator-1/c-1", PAY_CMD_APPROVE);
    turn(world);
    assert_string_equal(answer_of(world, "a-1"), "REJECTED OWN_REQUEST");
    assert_string_equal(refunds(world), "R01 CREATED");
    add_word(world, 3, "a-3", "operator-1/c-1", PAY_CMD_APPROVE);
    turn(world);
    assert_string_equal(answer_of(world, "a-3"), "ACCEPTED APPROVED");
    assert_string_equal(refunds(world), "R01 FAILED");
    expect_paid(world, 0, 0);
    assert_int_equal(count_of(world, "CorrectionApplied"), 1);
    assert_true(number(world, "SELECT count(*) FROM payfact.payment_state_history WHERE"
                              " evidence_level = 6 AND aggregate = 'REFUND'") >= 1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.approval WHERE key_id IN"
                                   " ('operator-2-a', 'operator-3-a')"),
                     2);
    assert_true(number(world, "SELECT count(*) FROM payfact.audit_log WHERE who = 'operator-3'") >=
                1);
    expect_gapless(world);
}

static void a_correction_of_a_row_that_moved_is_stale(void **state)
{
    struct world *world = *state;
    pay_for(world, P);
    add_refund(world, "r-1", 70);
    turn(world);
    const struct pay_command command = correction(world, "c-1");
    add_command(world, &command, world->operator_1, "operator-1-a");
    turn(world);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 70, "evt_r1");
    turn(world);
    add_word(world, 2, "a-2", "operator-1/c-1", PAY_CMD_APPROVE);
    turn(world);
    add_word(world, 3, "a-3", "operator-1/c-1", PAY_CMD_APPROVE);
    turn(world);
    assert_string_equal(answer_of(world, "a-3"), "REJECTED STALE_REQUEST");
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    expect_paid(world, 0, 70);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.approval_request WHERE status ="
                                   " 'STALE'"),
                     1);
}

/* Everything of a payment in one batch: rows that are new and changed at once. */
static void a_whole_life_in_one_batch_is_written_once(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    add_refund(world, "r-1", 70);
    tell(world, PAY_EV_REFUND_SUCCEEDED, R(1), "re_1", 70, "evt_2");
    tell(world, PAY_EV_DISPUTE_OPENED, NULL, "du_1", 30, "evt_3");
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED");
    expect_paid(world, 0, 70);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.payment_order WHERE refund_count"
                                   " = 1 AND dispute_count = 1 AND version = 1"),
                     1);
    assert_int_equal(number(world, "SELECT count(*) FROM payfact.dispute"), 1);
    add_refund(world, "r-2", 30);
    turn(world);
    assert_string_equal(refunds(world), "R01 SUCCEEDED, R02 CREATED");
    expect_gapless(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(f_) cmocka_unit_test_setup_teardown(f_, world_open, world_close)
        TEST(A1_two_refunds_of_70_on_100_at_once_are_one_reserved_and_one_refused),
        TEST(A1_two_refunds_by_two_processors_are_one_reserved_and_one_refused),
        TEST(reservations_that_no_action_holds_stop_their_own_payment_only),
        TEST(D7_K9_a_refund_told_many_times_is_booked_once),
        TEST(K9_a_refund_command_repeated_makes_one_refund),
        TEST(a_merchants_number_is_one_actions_over_all_payments),
        TEST(a_refused_refund_releases_its_reservation),
        TEST(an_unknown_refund_keeps_its_reservation_and_is_asked_about),
        TEST(a_refund_that_fails_after_it_succeeded_gives_back_what_was_refunded),
        TEST(an_older_answer_ends_no_question),
        TEST(a_refund_that_was_never_sent_goes_again_behind_the_next_gate),
        TEST(a_refund_in_the_psps_console_becomes_one_of_ours),
        TEST(a_partial_capture_reserves_settles_and_releases_the_rest),
        TEST(an_authorization_is_voided_by_cancel),
        TEST(what_a_dispute_withdraws_comes_back_with_it),
        TEST(a_refund_beyond_the_threshold_waits_for_two_people),
        TEST(refunds_of_one_day_wait_once_their_sum_passes_the_threshold),
        TEST(a_correction_needs_two_others_and_the_row_as_it_was),
        TEST(a_correction_of_a_row_that_moved_is_stale),
        TEST(a_whole_life_in_one_batch_is_written_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
