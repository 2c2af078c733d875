/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every cell of the money table is what the requirement says, for captures and for refunds,
 * and pay_decide() does it. Method: attempt_table.txt, read cell by cell, (1) against the table in
 * C as it prints itself, (2) against what happens to a capture and to a refund that are really in
 * that state.
 */
#include "tests/unit/core/table_text.h"
#include "tests/unit/core/world.h"

#include "common/core/money_table.h"

#define EVENT_COLUMN 9

static struct table_text expected;
static struct world world;

static enum pay_money_event event_of(const char *name)
{
    for (int e = 0; e < PAY_ME_COUNT; e++) {
        if (strcmp(pay_money_event_name((enum pay_money_event)e), name) == 0) {
            return (enum pay_money_event)e;
        }
    }
    fail_msg("no event %s", name);
    return PAY_ME_COUNT;
}

static enum pay_money_status status_of(const char *name)
{
    enum pay_money_status status = PAY_MONEY_CREATED;
    assert_true(pay_money_status_parse(pay_str_of(name), &status));
    return status;
}

static void every_cell_stands_in_the_table(void **state)
{
    (void)state;
    int seen[PAY_MONEY_STATUS_COUNT][PAY_ME_COUNT] = {{0}};

    assert_int_equal(expected.row_count, 1 + PAY_MONEY_STATUS_COUNT);
    assert_int_equal(expected.column_count, 1 + EVENT_COLUMN);
    for (size_t r = 1; r < expected.row_count; r++) {
        const enum pay_money_status status = status_of(expected.cells[r][0]);
        for (size_t c = 1; c < expected.column_count; c++) {
            const enum pay_money_event event = event_of(expected.cells[0][c]);
            char printed[128];
            pay_money_table_print(pay_money_table_cell(status, event), printed);
            assert_string_equal(printed, expected.cells[r][c]);
            seen[status][event]++;
        }
    }
    for (int s = 0; s < PAY_MONEY_STATUS_COUNT; s++) {
        for (int e = 0; e < PAY_ME_COUNT; e++) {
            assert_int_equal(seen[s][e], 1); /* No pair missing, none twice. */
        }
    }
}

/* --------------------------------------------------------------------------- the cell happens */

/* What differs between the two kinds. */
static const struct kind {
    const char *id, *job, *second_job;
    enum pay_command_type command;
    enum pay_event_type first; /* *_SUBMITTED; the others follow in the order of the table. */
    const int64_t amount;
} kinds[] = {
    {"C01", "C01.CAPTURE", "C01.CAPTURE.2", PAY_CMD_CAPTURE, PAY_EV_CAPTURE_SUBMITTED, 4000},
    {"R01", "R01.REFUND", "R01.REFUND.2", PAY_CMD_REQUEST_REFUND, PAY_EV_REFUND_SUBMITTED, 4000},
};

static const enum pay_evidence said_at[PAY_ME_COUNT] = {
    [PAY_ME_SUBMITTED] = PAY_EVIDENCE_LOCAL,  [PAY_ME_NOT_SENT] = PAY_EVIDENCE_LOCAL,
    [PAY_ME_PROCESSING] = PAY_EVIDENCE_QUERY, [PAY_ME_SUCCEEDED] = PAY_EVIDENCE_QUERY,
    [PAY_ME_FAILED] = PAY_EVIDENCE_QUERY,     [PAY_ME_UNKNOWN] = PAY_EVIDENCE_LOCAL,
    [PAY_ME_NOT_FOUND] = PAY_EVIDENCE_QUERY,  [PAY_ME_REVERSED] = PAY_EVIDENCE_QUERY,
};

static enum pay_event_type type_of(const struct kind *kind, enum pay_money_event event)
{
    return (enum pay_event_type)((int)kind->first + (int)event);
}

static void say(const struct kind *kind, enum pay_money_event event, enum pay_evidence evidence)
{
    world_action_say(&world, type_of(kind, event), kind->id, evidence);
}

/* The row proves that no job of it has left: at its end it is withdrawn. */
static void withdraw(const struct kind *kind)
{
    world.now_us = world_action(&world, kind->id)->give_up_at_us;
    world_wait_for_id(&world, PAY_DEADLINE_SEND, world_id(kind->id));
}

static void put(const struct kind *kind, enum pay_money_status status)
{
    if (kind->command == PAY_CMD_CAPTURE) {
        world_authorized(&world);
    } else {
        world_paid(&world);
    }
    world_money_command(&world, kind->command, kind->amount);
    assert_verdict(&world, APPLY, "ACCEPTED");
    if (status == PAY_MONEY_CREATED) {
        return;
    }
    if (status == PAY_MONEY_CANCELED) {
        withdraw(kind);
    } else {
        world_action_pass(&world, kind->job);
        say(kind, PAY_ME_SUBMITTED, PAY_EVIDENCE_LOCAL);
    }
    if (status == PAY_MONEY_UNKNOWN) {
        say(kind, PAY_ME_UNKNOWN, PAY_EVIDENCE_LOCAL);
    } else if (status == PAY_MONEY_SUCCEEDED || status == PAY_MONEY_REVERSED) {
        say(kind, PAY_ME_SUCCEEDED, PAY_EVIDENCE_WEBHOOK);
    } else if (status == PAY_MONEY_FAILED) {
        say(kind, PAY_ME_FAILED, PAY_EVIDENCE_QUERY);
    }
    if (status == PAY_MONEY_REVERSED) {
        say(kind, PAY_ME_REVERSED, PAY_EVIDENCE_QUERY);
    }
    assert_int_equal(world_action(&world, kind->id)->status, status);
}

static void not_found(const struct kind *kind)
{
    for (int i = 0; i < 2; i++) {
        world_action_event(&world, type_of(kind, PAY_ME_NOT_FOUND), kind->id)->has_amount = false;
        world_action_answers(&world, kind->job, PAY_QUERY_BY_REQUEST_NUMBER,
                             world.now_us + (1000 + i) * SECOND);
        world_decide(&world, PAY_EVIDENCE_QUERY);
    }
}

/* Withdrawn is a decision of ours: of a deadline that proves it, or of one that finds it sent. */
static void due(const struct kind *kind)
{
    static char id[PAY_JOB_ID_SIZE];
    const int64_t due_at_us = world.now_us + 700 * SECOND;

    memcpy(id, world_id(kind->id), PAY_ACTION_ID_SIZE);
    world_event(&world, PAY_EV_OTHER, 1); /* For the cause. */
    world.input.kind = PAY_INPUT_DEADLINE;
    world.input.event = NULL;
    world.input.deadline = (struct pay_deadline_due){.kind = PAY_DEADLINE_SEND,
                                                     .aggregate_id = pay_str_of(id),
                                                     .due_at_us = due_at_us,
                                                     .row_due_at_us = due_at_us};
    world.now_us = due_at_us;
    world_decide(&world, PAY_EVIDENCE_LOCAL);
}

/* Of a send that was certainly not made: the sender freed the gate. */
static void free_gate(const struct kind *kind)
{
    struct pay_gate *gate = world_action_gate(&world, kind->job);
    gate->sending_at_us = 0;
}

static void let_it_happen(const struct kind *kind, enum pay_money_event event)
{
    if (event == PAY_ME_WITHDRAWN) {
        due(kind);
    } else if (event == PAY_ME_NOT_FOUND) {
        not_found(kind);
    } else {
        if (event == PAY_ME_NOT_SENT) {
            free_gate(kind);
        }
        say(kind, event, said_at[event]);
    }
}

static void expect(const struct kind *kind, const char *cell, const char *now)
{
    const char *status = pay_money_status_name(world_action(&world, kind->id)->status);
    const char *verdict = pay_verdict_name(world.out.verdict);

    if (strncmp(cell, "→", strlen("→")) == 0) {
        assert_string_equal(verdict, "APPLY");
        assert_int_equal(strncmp(cell + strlen("→"), status, strlen(status)), 0);
    } else if (strcmp(cell, "as ²") == 0) {
        assert_string_equal(verdict, "APPLY");
        assert_string_equal(status, "FAILED");
        assert_int_equal(world_action(&world, kind->id)->failure_class, PAY_FAILURE_PSP_NOT_FOUND);
    } else if (cell[0] == 'R') {
        assert_string_equal(verdict, "REJECT");
        assert_string_equal(status, now);
    } else if (strcmp(cell, "· below QUERY, N at QUERY") == 0) {
        assert_string_equal(verdict, "NEEDS_RECONCILIATION");
        assert_string_equal(status, now);
        assert_non_null(world_case(&world, PAY_CASE_CONTRADICTION));
    } else {
        assert_int_equal(strncmp(cell, "·", strlen("·")), 0);
        assert_string_equal(verdict, "IGNORE");
        assert_string_equal(status, now);
    }
}

static void every_cell_happens(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (size_t r = 1; r < expected.row_count; r++) {
            for (size_t c = 1; c < expected.column_count; c++) {
                const char *now = expected.cells[r][0];
                print_message("%s %s + %s: %s\n", kinds[k].id, now, expected.cells[0][c],
                              expected.cells[r][c]);
                put(&kinds[k], status_of(now));
                let_it_happen(&kinds[k], event_of(expected.cells[0][c]));
                expect(&kinds[k], expected.cells[r][c], now);
            }
        }
    }
}

/* "· below QUERY": the same news, as a callback. */
static void success_after_a_reversal_is_stale_below_query(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        put(&kinds[k], PAY_MONEY_REVERSED);
        say(&kinds[k], PAY_ME_SUCCEEDED, PAY_EVIDENCE_WEBHOOK);
        assert_verdict(&world, IGNORE, "STALE");
        assert_null(world_case(&world, PAY_CASE_CONTRADICTION));
    }
}

/* -------------------------------------------------------------------------- least evidence */

static const struct {
    const char *event;
    enum pay_evidence least, most;
} evidence_rows[] = {
    {"submitted", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_LOCAL},
    {"not sent", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_LOCAL},
    {"processing", PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    {"succeeded", PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    {"failed", PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    {"unknown", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_LOCAL},
    {"not found", PAY_EVIDENCE_QUERY, PAY_EVIDENCE_QUERY},
    {"reversed", PAY_EVIDENCE_WEBHOOK, PAY_EVIDENCE_CONTROLLED},
};

static void weaker_evidence_is_rejected(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof evidence_rows / sizeof evidence_rows[0]; i++) {
        const enum pay_money_event event = event_of(evidence_rows[i].event);
        for (int level = PAY_EVIDENCE_LOCAL; level < PAY_EVIDENCE_COUNT; level++) {
            const bool admissible =
                level >= (int)evidence_rows[i].least && level <= (int)evidence_rows[i].most;
            put(&kinds[level % 2], PAY_MONEY_PROCESSING);
            say(&kinds[level % 2], event, (enum pay_evidence)level);
            assert_int_equal(strcmp(world.out.reason_code, "EVIDENCE_NOT_ADMISSIBLE") != 0,
                             admissible);
            assert_int_equal(world.out.security, !admissible);
        }
    }
}

static int read_expected(void **state)
{
    (void)state;
    table_text_read(&expected, "capture, refund \\ event");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_stands_in_the_table),
        cmocka_unit_test(every_cell_happens),
        cmocka_unit_test(success_after_a_reversal_is_stale_below_query),
        cmocka_unit_test(weaker_evidence_is_rejected),
    };
    return cmocka_run_group_tests_name("money_table", tests, read_expected, NULL);
}
