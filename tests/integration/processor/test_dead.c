/* SPDX-License-Identifier: Apache-2.0 */
/* What was given up and what an operator may do about it, against a real database: events that are
 * decided at last, poison that can be read by now, rows that Kafka refused, cases of no payment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "common/contracts/released.h"
#include "tests/integration/processor/world.h"

#define P payment_id(0)

/* ---- commands ---- */

static struct pay_command by_operator(enum pay_command_type type, const char *id)
{
    return (struct pay_command){
        .command_id = pay_str_of(id),
        .type = type,
        .caller = PAY_STR("operator-1"),
        .merchant_id = PAY_STR("acme"),
        .payment_id = PAY_STR(""),
        .issued_at_us = 1,
        .subject = {.reason_code = PAY_STR("FIXED")},
    };
}

static struct pay_command replay_of(const char *id, const char *psp, const char *account,
                                    const char *transport_key)
{
    struct pay_command command = by_operator(PAY_CMD_REPLAY_INPUT, id);
    command.subject.psp = pay_str_of(psp);
    command.subject.psp_account = pay_str_of(account);
    command.subject.transport_key = pay_str_of(transport_key);
    return command;
}

static struct pay_command about_row(enum pay_command_type type, const char *id,
                                    const char *event_id)
{
    struct pay_command command = by_operator(type, id);
    command.payment_id = pay_str_of(P);
    command.subject.event_id = pay_str_of(event_id);
    return command;
}

static struct pay_command close_of(const char *id, const char *case_id, int64_t version)
{
    struct pay_command command = by_operator(PAY_CMD_RESOLVE_CASE, id);
    command.controlled = (struct pay_cmd_controlled){
        .aggregate_id = pay_str_of(case_id),
        .expected_version = version,
        .reason_code = PAY_STR("DISCARDED"),
    };
    return command;
}

static void send(struct world *world, const struct pay_command *command)
{
    add_command(world, command, world->operator_1, "operator-1-a");
    turn(world);
}

/* "ACCEPTED", or "REJECTED" and why. */
static void expect_answer(struct world *world, const char *id, const char *answer)
{
    char sql[256];
    (void)snprintf(
        sql, sizeof sql,
        "SELECT concat_ws(' ', status, reason_code) FROM payfact.command WHERE command_id = '%s'",
        id);
    assert_string_equal(pay_testdb_text(&world->db, sql), answer);
}

static void expect_refused(struct world *world, const struct pay_command *command, const char *why)
{
    char answer[64];
    (void)snprintf(answer, sizeof answer, "REJECTED %s", why);
    send(world, command);
    expect_answer(world, command->command_id.ptr, answer);
}

static void expect_accepted(struct world *world, const struct pay_command *command)
{
    send(world, command);
    expect_answer(world, command->command_id.ptr, "ACCEPTED");
}

static void expect_rows(struct world *world, const char *from, int64_t count)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM payfact.%s", from);
    assert_int_equal(number(world, sql), count);
}

/* ---- events without a payment ---- */

static void give_up(struct world *world, const char *transport_key)
{
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, transport_key);
    turn(world);
    pay_testdb_run(&world->db,
                   "UPDATE payfact.channel_event SET first_seen_at = now() - interval '2 hours'");
    add_replay(world, transport_key);
    turn(world);
    expect_rows(world, "channel_event WHERE status = 'DEAD'", 1);
    expect_rows(world, "manual_case WHERE kind = 'ORPHAN' AND status = 'OPEN'", 1);
}

static void a_replayed_event_is_decided_and_its_case_is_closed(void **state)
{
    struct world *world = *state;
    give_up(world, "evt_1");
    struct pay_command replay = replay_of("replay-1", "stripe", "stripe-acme", "evt_1");
    expect_accepted(world, &replay); /* still no payment: given up once more */
    expect_rows(world, "channel_event WHERE status = 'DEAD'", 1);
    expect_rows(world, "manual_case WHERE status = 'OPEN'", 1);
    add_create(world, P);
    turn(world);
    replay.command_id = PAY_STR("replay-2");
    replay.payment_id = pay_str_of(P);
    expect_accepted(world, &replay);
    expect_rows(world, "payment_order WHERE status = 'SUCCEEDED'", 1);
    expect_rows(world, "channel_event WHERE status = 'DECIDED'", 1);
    expect_rows(world,
                "manual_case WHERE status = 'RESOLVED' AND resolved_by = 'operator-1' AND"
                " resolution_code = 'DECIDED' AND version = 2",
                1);
    expect_rows(world,
                "audit_log WHERE what = 'REPLAY_INPUT' AND who = 'operator-1' AND subject ="
                " 'stripe/stripe-acme/evt_1' AND reason = 'ACCEPTED FIXED'",
                2);
    replay.command_id = PAY_STR("replay-3");
    expect_refused(world, &replay, "ALREADY_DECIDED");
}

static void a_dead_event_that_is_delivered_again_is_decided(void **state)
{
    struct world *world = *state;
    give_up(world, "evt_1");
    add_create(world, P);
    turn(world);
    add_callback(world, P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    turn(world);
    expect_rows(world, "payment_order WHERE status = 'SUCCEEDED'", 1);
    expect_rows(world, "channel_event WHERE status = 'DECIDED' AND delivery_count = 2", 1);
    expect_rows(world,
                "manual_case WHERE status = 'RESOLVED' AND resolved_by ="
                " 'payfact-processor'",
                1);
}

static void what_is_not_there_or_not_the_callers_is_no_input(void **state)
{
    struct world *world = *state;
    give_up(world, "evt_1");
    struct pay_command replay = replay_of("r-1", "stripe", "stripe-acme", "evt_2");
    expect_refused(world, &replay, "NO_SUCH_INPUT");
    replay = replay_of("r-2", "stripe", "stripe-acme", "evt_1");
    replay.merchant_id = PAY_STR("other");
    expect_refused(world, &replay, "NO_SUCH_INPUT");
    replay = replay_of("r-3", "Stripe/", "stripe-acme", "evt_1");
    expect_refused(world, &replay, "NO_SUCH_INPUT");
    replay = replay_of("r-4", "", "", "payfact.inputs:0:4711");
    expect_refused(world, &replay, "NO_SUCH_INPUT");
    expect_rows(world, "channel_event WHERE status = 'DEAD'", 1);
    expect_rows(world, "audit_log WHERE reason = 'NO_SUCH_INPUT FIXED'", 4);
}

static void a_refused_notification_is_evidence_and_never_replayed(void **state)
{
    struct world *world = *state;
    struct pay_payment_input refused = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "n:0:1");
    refused.kind = PAY_WIRE_REFUSED_NOTIFICATION;
    refused.refused =
        (struct pay_wire_refused){PAY_STR("stripe"), PAY_STR("stripe-acme"), PAY_STR("SIGNATURE")};
    refused.event = (struct pay_event){.type = PAY_EV_UNRECOGNIZED};
    add_input(world, &refused, "stripe-acme");
    turn(world);
    expect_rows(world, "channel_event WHERE status = 'DEAD' AND kind = 'REFUSED_NOTIFICATION'", 1);
    const struct pay_command replay = replay_of("r-1", "stripe", "stripe-acme", "n:0:1");
    expect_refused(world, &replay, "NOT_REPLAYABLE");
}

/* ---- poison ---- */

/* An event that this database cannot hold, as a version with a bug would make it. */
static void add_refused_event(struct world *world, const char *transport_key)
{
    struct pay_payment_input bad = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, transport_key);
    bad.source = PAY_SOURCE_SYNC;
    bad.event.call = (struct pay_call){
        .is_set = true,
        .job_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5A00A01.SUBMIT"),
        .send_no = 1,
        .http_status = 100000,
    };
    add_input(world, &bad, P);
}

static void poison_that_holds_an_event_is_delivered_again_by_a_replay(void **state)
{
    struct world *world = *state;
    add_create(world, P);
    turn(world);
    add_refused_event(world, "answer-1");
    turn(world);
    expect_rows(world, "manual_case WHERE kind = 'DEAD_INPUT' AND status = 'OPEN'", 1);
    struct pay_command replay = replay_of("r-1", "", "", "payfact.inputs:0:1");
    expect_refused(world, &replay, "DATA_REFUSED"); /* the bug is still there */
    expect_rows(world, "channel_event WHERE kind = 'POISON' AND status = 'DEAD'", 1);
    expect_rows(world, "channel_event", 1); /* the command is no poison of its own */
    pay_testdb_run(&world->db, "ALTER TABLE payfact.payment_state_history ALTER http_status TYPE"
                               " integer"); /* the fix */
    replay.command_id = PAY_STR("r-2");
    expect_accepted(world, &replay);
    expect_rows(world, "payment_order WHERE status = 'SUCCEEDED'", 1);
    expect_rows(world, "channel_event WHERE kind = 'POISON' AND status = 'DECIDED'", 1);
    expect_rows(world,
                "manual_case WHERE status = 'RESOLVED' AND resolution_code = 'REPLAYED' AND"
                " resolved_by = 'operator-1'",
                1);
    add_refused_event(world, "answer-1"); /* it has its own key now */
    turn(world);
    expect_rows(world, "channel_event WHERE kind = 'PSP_EVENT' AND delivery_count = 2", 1);
    replay.command_id = PAY_STR("r-3");
    expect_refused(world, &replay, "ALREADY_DECIDED");
}

static void an_event_out_of_poison_whose_payment_is_missing_is_an_orphan(void **state)
{
    struct world *world = *state;
    /* Refused as poison first: its trace id is no text. */
    add_bytes(world, "k", "junk", 4);
    turn(world);
    struct pay_buf value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    struct pay_buf sealed = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    struct pay_str key_id;
    const struct pay_payment_input input = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    world_must(world, pay_payment_input_encode(world->codec, &input, &value, &world->err));
    world_must(world,
               pay_keyring_seal(world->keyring,
                                (struct pay_bytes){(const uint8_t *)"//payfact.inputs:0:0", 20},
                                pay_buf_bytes(&value), &key_id, &sealed, &world->err));
    static char sql[8192];
    int len = snprintf(sql, sizeof sql, "UPDATE payfact.channel_event SET body = '\\x");
    for (size_t i = 0; i < sealed.len; i++) {
        len += snprintf(sql + len, sizeof sql - (size_t)len, "%02x", sealed.data[i]);
    }
    (void)snprintf(sql + len, sizeof sql - (size_t)len, "'");
    pay_testdb_run(&world->db, sql);
    pay_buf_free(&value);
    pay_buf_free(&sealed);
    const struct pay_command replay = replay_of("r-1", "", "", "payfact.inputs:0:0");
    expect_accepted(world, &replay);
    expect_rows(world, "channel_event WHERE kind = 'PSP_EVENT' AND status = 'ORPHAN'", 1);
    expect_rows(world,
                "payment_deadline WHERE kind = 'ORPHAN' AND aggregate_id ="
                " 'stripe/stripe-acme/evt_1'",
                1);
    add_create(world, P);
    add_replay(world, "evt_1"); /* as recovery does */
    turn(world);
    expect_rows(world, "payment_order WHERE status = 'SUCCEEDED'", 1);
    expect_rows(world, "payment_deadline WHERE kind = 'ORPHAN'", 0);
}

static void what_cannot_be_read_yet_stays_dead(void **state)
{
    struct world *world = *state;
    add_bytes(world, "k", "4111111111111111 is no input", 28);
    turn(world);
    struct pay_command replay = replay_of("r-1", "", "", "payfact.inputs:0:0");
    expect_refused(world, &replay, "MALFORMED");
    pay_testdb_run(&world->db, "UPDATE payfact.channel_event SET key_id = 'gone'");
    replay.command_id = PAY_STR("r-2");
    expect_refused(world, &replay, "EVIDENCE_SEALED");
    expect_rows(world, "channel_event WHERE status = 'DEAD'", 1);
    expect_rows(world, "manual_case WHERE status = 'OPEN'", 1);
    assert_int_equal(world->letter_count, 1);
}

static void a_command_in_poison_is_its_callers_to_send_again(void **state)
{
    struct world *world = *state;
    struct pay_command create = create_command(P);
    add_command(world, &create, world->stranger, "shop-a"); /* a wrong signature */
    turn(world);
    expect_rows(world, "manual_case WHERE kind = 'DEAD_INPUT'", 1);
    const struct pay_command replay = replay_of("r-1", "", "", "payfact.inputs:0:0");
    expect_refused(world, &replay, "SIGNATURE");
    expect_rows(world, "payment_order", 0);
}

/* SCHEMA_UNKNOWN is replayable: here the upgrade is a schema that the worker learns. */
static void an_input_of_a_later_schema_is_decided_after_the_upgrade(void **state)
{
    struct world *world = *state;
    static char later[PAY_CODEC_SCHEMA_BYTES_MAX];
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(PAY_RECORD_PAYMENT_INPUT, released);
    const struct pay_str json = released[count - 1].json;
    const char *end = json.ptr + json.len;
    do {
        end--;
    } while (*end != ']');
    (void)snprintf(
        later, sizeof later,
        "%.*s, {\"name\": \"later\", \"type\": [\"null\", \"string\"], \"default\": null}%s",
        (int)(end - json.ptr), json.ptr, end);
    uint64_t fingerprint = 0;
    world_must(world, pay_schema_text_fingerprint(PAY_RECORD_PAYMENT_INPUT, pay_str_of(later),
                                                  &fingerprint, &world->err));
    struct pay_buf value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    const struct pay_payment_input input = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    world_must(world, pay_payment_input_encode(world->codec, &input, &value, &world->err));
    pay_fingerprint_put(value.data + 2, fingerprint);
    pay_buf_add_char(&value, '\0'); /* later: null */
    add_create(world, P);
    add_bytes(world, P, value.data, value.len);
    pay_buf_free(&value);
    turn(world);
    expect_rows(world, "channel_event WHERE verification = 'SCHEMA_UNKNOWN' AND status = 'DEAD'",
                1);
    struct pay_command replay = replay_of("r-1", "", "", "payfact.inputs:0:1");
    expect_refused(world, &replay, "SCHEMA_UNKNOWN");
    world_must(world, pay_codec_learn(world->worker->codec, PAY_RECORD_PAYMENT_INPUT,
                                      pay_str_of(later), &fingerprint, &world->err));
    replay.command_id = PAY_STR("r-2");
    replay.merchant_id = PAY_STR("other");
    expect_refused(world, &replay, "NO_SUCH_INPUT"); /* it is of acme's account */
    replay.command_id = PAY_STR("r-3");
    replay.merchant_id = PAY_STR("acme");
    add_command(world, &replay, world->operator_1, "operator-1-a");
    replay.command_id = PAY_STR("r-4"); /* two at once are one delivery */
    expect_refused(world, &replay, "ALREADY_DECIDED");
    expect_answer(world, "r-3", "ACCEPTED");
    expect_rows(world, "payment_order WHERE status = 'SUCCEEDED' AND version = 2", 1);
}

/* ---- rows that Kafka refused ---- */

static void make_dead(struct world *world, const char *which)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE payfact.payment_outbox SET dead_at = now(), dead_reason ="
                   " 'TOPIC_AUTHORIZATION_FAILED', attempts = 9 WHERE %s",
                   which);
    pay_testdb_run(&world->db, sql);
}

static void a_replayed_row_is_published_as_it_was(void **state)
{
    struct world *world = *state;
    static char event_id[PAY_EVENT_ID_SIZE];
    static const char is_started[] = "headers::text LIKE '%AttemptStarted%'";
    add_create(world, P);
    turn(world);
    (void)snprintf(event_id, sizeof event_id, "%s",
                   pay_testdb_text(&world->db, "SELECT headers[array_position(headers, 'ce_id') +"
                                               " 1] FROM payfact.payment_outbox WHERE"
                                               " headers::text LIKE '%AttemptStarted%'"));
    int64_t before = number(world, "SELECT sum(hashtext(encode(payload, 'hex') || id))::int8 FROM"
                                   " payfact.payment_outbox");
    struct pay_command replay = about_row(PAY_CMD_REPLAY_EVENT, "r-1", event_id);
    expect_refused(world, &replay, "NO_SUCH_EVENT"); /* not dead */
    make_dead(world, is_started);
    replay.command_id = PAY_STR("r-2");
    replay.merchant_id = PAY_STR("other");
    expect_refused(world, &replay, "NO_SUCH_EVENT"); /* not the caller's */
    replay.command_id = PAY_STR("r-3");
    replay.merchant_id = PAY_STR("acme");
    expect_accepted(world, &replay);
    expect_rows(world, "payment_outbox WHERE dead_at IS NOT NULL", 0);
    /* In its place, behind the hold that keeps the later rows from overtaking it. */
    expect_rows(world,
                "payment_outbox WHERE headers::text LIKE '%AttemptStarted%' AND attempts = 1"
                " AND available_at > now()",
                1);
    assert_int_equal(number(world, "SELECT sum(hashtext(encode(payload, 'hex') || id))::int8 FROM"
                                   " payfact.payment_outbox WHERE headers::text NOT LIKE"
                                   " '%Command%' OR id < (SELECT min(id) FROM"
                                   " payfact.payment_outbox WHERE headers::text LIKE"
                                   " '%CommandRejected%')"),
                     before);
    expect_rows(world, "audit_log WHERE what = 'REPLAY_EVENT' AND reason = 'ACCEPTED FIXED'", 1);
}

static void a_dead_job_is_sent_again_and_never_withheld(void **state)
{
    struct world *world = *state;
    static char name[64];
    add_create(world, P);
    turn(world);
    make_dead(world, "topic = 'psp-jobs'");
    (void)snprintf(name, sizeof name, "%s",
                   pay_testdb_text(&world->db,
                                   "SELECT 'psp-jobs/' || shard || '/' || id FROM"
                                   " payfact.payment_outbox WHERE dead_at IS NOT NULL"));
    struct pay_command command = about_row(PAY_CMD_DISCARD_EVENT, "d-1", name);
    expect_refused(world, &command, "NOT_AN_EVENT");
    command = about_row(PAY_CMD_REPLAY_EVENT, "r-1", name);
    command.merchant_id = PAY_STR("other");
    expect_refused(world, &command, "NO_SUCH_EVENT");
    command = about_row(PAY_CMD_REPLAY_EVENT, "r-2", name);
    expect_accepted(world, &command);
    expect_rows(world,
                "payment_outbox WHERE topic = 'psp-jobs' AND dead_at IS NULL AND attempts ="
                " 1",
                1);
    /* The gate still knows exactly these bytes. */
    expect_rows(world,
                "psp_request g JOIN payfact.payment_outbox o ON o.topic = 'psp-jobs' AND"
                " g.digest = sha256(o.payload)",
                1);
}

static void two_replays_of_one_row_at_once(void **state)
{
    struct world *world = *state;
    static char name[64];
    add_create(world, P);
    turn(world);
    make_dead(world, "topic = 'psp-jobs'");
    (void)snprintf(name, sizeof name, "%s",
                   pay_testdb_text(&world->db,
                                   "SELECT 'psp-jobs/' || shard || '/' || id FROM"
                                   " payfact.payment_outbox WHERE dead_at IS NOT NULL"));
    struct pay_command replay = about_row(PAY_CMD_REPLAY_EVENT, "r-1", name);
    add_command(world, &replay, world->operator_1, "operator-1-a");
    replay.command_id = PAY_STR("r-2");
    send(world, &replay);
    expect_answer(world, "r-1", "ACCEPTED");
    expect_answer(world, "r-2", "REJECTED NO_SUCH_EVENT");
    expect_rows(world, "payment_outbox WHERE dead_at IS NOT NULL", 0);
}

/* ---- cases of no payment ---- */

static void a_case_of_no_payment_is_closed_by_its_version(void **state)
{
    struct world *world = *state;
    add_bytes(world, "k", "junk", 4);
    turn(world);
    struct pay_command close = close_of("c-1", "//payfact.inputs:0:0", 2);
    expect_refused(world, &close, "STALE_REQUEST");
    close = close_of("c-2", "//payfact.inputs:0:1", 1);
    expect_refused(world, &close, "NO_SUCH_CASE");
    close = close_of("c-3", "//payfact.inputs:0:0", 1);
    expect_accepted(world, &close);
    expect_rows(world,
                "manual_case WHERE status = 'RESOLVED' AND resolved_by = 'operator-1' AND"
                " resolution_code = 'DISCARDED' AND version = 2",
                1);
    expect_rows(world, "channel_event WHERE status = 'DEAD'", 1); /* evidence stays */
    expect_rows(world,
                "audit_log WHERE what = 'RESOLVE_CASE' AND subject = '//payfact.inputs:0:0'"
                " AND reason = 'ACCEPTED DISCARDED'",
                1);
    close = close_of("c-4", "//payfact.inputs:0:0", 2);
    expect_refused(world, &close, "ALREADY_RESOLVED");
}

static void an_orphans_case_is_its_accounts_merchants(void **state)
{
    struct world *world = *state;
    give_up(world, "evt_1");
    struct pay_command close = close_of("c-1", "stripe/stripe-acme/evt_1", 1);
    close.merchant_id = PAY_STR("other");
    expect_refused(world, &close, "NO_SUCH_CASE");
    close.command_id = PAY_STR("c-2");
    close.merchant_id = PAY_STR("acme");
    expect_accepted(world, &close);
    expect_rows(world, "manual_case WHERE status = 'RESOLVED'", 1);
}

/* A money case has its payment and its two approvals; this door is not for it. */
static void a_payments_case_is_out_of_reach(void **state)
{
    struct world *world = *state;
    struct pay_payment_input wrong = callback(P, PAY_EV_ATTEMPT_SUCCEEDED, "evt_1");
    wrong.event.amount.amount_minor = 99;
    add_create(world, P);
    add_input(world, &wrong, P);
    turn(world);
    static char case_id[128];
    (void)snprintf(case_id, sizeof case_id, "%s",
                   pay_testdb_text(&world->db, "SELECT case_id FROM payfact.manual_case"));
    struct pay_command close = close_of("c-1", case_id, 1);
    expect_refused(world, &close, "NO_SUCH_CASE");
    expect_rows(world, "manual_case WHERE status = 'OPEN'", 1);
}

static void another_merchants_account_cannot_be_paused(void **state)
{
    struct world *world = *state;
    struct pay_command pause = by_operator(PAY_CMD_PAUSE_ROUTE, "p-1");
    pause.merchant_id = PAY_STR("other");
    pause.subject.psp = PAY_STR("stripe");
    pause.subject.psp_account = PAY_STR("stripe-acme");
    pause.subject.method = PAY_STR("");
    expect_refused(world, &pause, "UNKNOWN_ROUTE");
    expect_rows(world, "route_pause", 0);
}

#define TEST(test_) cmocka_unit_test_setup_teardown(test_, world_open, world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_replayed_event_is_decided_and_its_case_is_closed),
        TEST(a_dead_event_that_is_delivered_again_is_decided),
        TEST(what_is_not_there_or_not_the_callers_is_no_input),
        TEST(a_refused_notification_is_evidence_and_never_replayed),
        TEST(poison_that_holds_an_event_is_delivered_again_by_a_replay),
        TEST(an_event_out_of_poison_whose_payment_is_missing_is_an_orphan),
        TEST(what_cannot_be_read_yet_stays_dead),
        TEST(a_command_in_poison_is_its_callers_to_send_again),
        TEST(an_input_of_a_later_schema_is_decided_after_the_upgrade),
        TEST(a_replayed_row_is_published_as_it_was),
        TEST(a_dead_job_is_sent_again_and_never_withheld),
        TEST(two_replays_of_one_row_at_once),
        TEST(a_case_of_no_payment_is_closed_by_its_version),
        TEST(an_orphans_case_is_its_accounts_merchants),
        TEST(a_payments_case_is_out_of_reach),
        TEST(another_merchants_account_cannot_be_paused),
    };
    return cmocka_run_group_tests_name("integration.processor.dead", tests, NULL, NULL);
}
