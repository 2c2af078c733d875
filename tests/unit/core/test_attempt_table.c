/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: every cell of the attempt table is what the requirement says, and pay_decide() does it.
 * Method: attempt_table.txt, read cell by cell, (1) against the table in C as it prints itself,
 * (2) against what happens to a payment that is really in that state, in the circumstances in which
 * a footnote lets the cell happen. The footnotes one by one: test_notes.c.
 */
#include "tests/unit/core/table_text.h"
#include "tests/unit/core/world.h"

#include "common/core/attempt_table.h"

#define STATUS_ROW 9
#define EVENT_COLUMN 15

static struct table_text expected;
static struct world world;

static enum pay_attempt_event event_of(const char *name)
{
    for (int e = 0; e < PAY_AE_COUNT; e++) {
        if (strcmp(pay_attempt_event_name((enum pay_attempt_event)e), name) == 0) {
            return (enum pay_attempt_event)e;
        }
    }
    fail_msg("no event %s", name);
    return PAY_AE_COUNT;
}

static enum pay_attempt_status status_of(const char *name)
{
    enum pay_attempt_status status = PAY_ATTEMPT_CREATED;
    assert_true(pay_attempt_status_parse(pay_str_of(name), &status));
    return status;
}

static void every_cell_stands_in_the_table(void **state)
{
    (void)state;
    int seen[PAY_ATTEMPT_STATUS_COUNT][PAY_AE_COUNT] = {{0}};

    assert_int_equal(expected.row_count, 1 + STATUS_ROW);
    assert_int_equal(expected.column_count, 1 + EVENT_COLUMN);
    for (size_t r = 1; r < expected.row_count; r++) {
        const enum pay_attempt_status status = status_of(expected.cells[r][0]);
        for (size_t c = 1; c < expected.column_count; c++) {
            const enum pay_attempt_event event = event_of(expected.cells[0][c]);
            char printed[64];
            pay_attempt_table_print(pay_attempt_table_cell(status, event), printed);
            assert_string_equal(printed, expected.cells[r][c]);
            seen[status][event]++;
        }
    }
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        for (int e = 0; e < PAY_AE_COUNT; e++) {
            assert_int_equal(seen[s][e], 1); /* No pair missing, none twice. */
        }
    }
}

/* ------------------------------------------------------------------------------ the cell happens
 */

static const struct {
    enum pay_event_type type;
    enum pay_evidence evidence;
} said_by[PAY_AE_COUNT] = {
    [PAY_AE_SUB] = {PAY_EV_ATTEMPT_SUBMITTED, PAY_EVIDENCE_LOCAL},
    [PAY_AE_NSN] = {PAY_EV_ATTEMPT_NOT_SENT, PAY_EVIDENCE_LOCAL},
    [PAY_AE_PRC] = {PAY_EV_ATTEMPT_PROCESSING, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_ACT] = {PAY_EV_ATTEMPT_ACTION_REQUIRED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_APR] = {PAY_EV_ATTEMPT_APPROVED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_AUT] = {PAY_EV_ATTEMPT_AUTHORIZED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_SUC] = {PAY_EV_ATTEMPT_SUCCEEDED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_DEC] = {PAY_EV_ATTEMPT_DECLINED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_FAI] = {PAY_EV_ATTEMPT_FAILED, PAY_EVIDENCE_QUERY},
    [PAY_AE_CAN] = {PAY_EV_ATTEMPT_CANCELED, PAY_EVIDENCE_QUERY},
    [PAY_AE_UNK] = {PAY_EV_ATTEMPT_UNKNOWN, PAY_EVIDENCE_LOCAL},
    [PAY_AE_NFD] = {PAY_EV_ATTEMPT_NOT_FOUND, PAY_EVIDENCE_QUERY},
    [PAY_AE_XPA] = {PAY_EV_ATTEMPT_AUTHORIZATION_EXPIRED, PAY_EVIDENCE_WEBHOOK},
    [PAY_AE_REV] = {PAY_EV_ATTEMPT_REVERSED, PAY_EVIDENCE_WEBHOOK},
};

static void action_deadline(struct world *w)
{
    const int64_t due_at_us = w->now_us + SECOND;
    world_event(w, PAY_EV_OTHER, 1); /* For the cause. */
    w->input.kind = PAY_INPUT_DEADLINE;
    w->input.event = NULL;
    w->input.deadline = (struct pay_deadline_due){.kind = PAY_DEADLINE_ACTION,
                                                  .aggregate_id = pay_str_of(WORLD_PAYMENT "A01"),
                                                  .due_at_us = due_at_us,
                                                  .row_due_at_us = due_at_us};
    world_decide(w, PAY_EVIDENCE_LOCAL);
}

static void not_found_twice(struct world *w)
{
    const int64_t late_us = w->now_us + 1000 * SECOND;
    world_not_found(w, 1, late_us);
    assert_true(w->out.verdict == PAY_VERDICT_IGNORE);
    world_not_found(w, 1, late_us + SECOND);
}

/* Of a send that was certainly not made: the sender freed the gate. */
static void free_gate(struct world *w)
{
    struct pay_gate *gate = world_gate(w, ".SUBMIT", 1);
    gate->sending_at_us = 0;
}

static void let_it_happen(struct world *w, enum pay_attempt_event event)
{
    if (event == PAY_AE_AEX) {
        action_deadline(w);
    } else if (event == PAY_AE_NFD) {
        not_found_twice(w);
    } else {
        if (event == PAY_AE_NSN) {
            free_gate(w);
        }
        world_say(w, said_by[event].type, 1, said_by[event].evidence);
    }
}

static void expect(struct world *w, const char *cell, const char *now)
{
    const char *status = pay_attempt_status_name(world_attempt(w, 1)->status);
    const char *verdict = pay_verdict_name(w->out.verdict);

    if (strncmp(cell, "→", strlen("→")) == 0) {
        const char *next = cell + strlen("→");
        assert_string_equal(verdict, "APPLY");
        assert_int_equal(strncmp(status, next, strlen(status)), 0);
        assert_true((unsigned char)next[strlen(status)] < 'A' ||
                    (unsigned char)next[strlen(status)] > 'Z');
        return;
    }
    if (strcmp(cell, "²") == 0) {
        assert_string_equal(verdict, "APPLY");
        assert_string_equal(status, "FAILED");
        return;
    }
    assert_string_equal(status, now);
    if (strcmp(cell, "³") == 0) {
        assert_string_equal(verdict, "APPLY");
        assert_int_equal(world_count_jobs(w, PAY_JOB_CANCEL) + world_count_jobs(w, PAY_JOB_QUERY),
                         1);
    } else if (cell[0] == 'R') {
        assert_string_equal(verdict, "REJECT");
    } else if (cell[0] == 'N') {
        assert_string_equal(verdict, "NEEDS_RECONCILIATION");
    } else if (strncmp(cell, "apply", strlen("apply")) == 0) {
        assert_string_equal(verdict, "APPLY");
    } else {
        assert_int_equal(strncmp(cell, "·", strlen("·")), 0);
        assert_string_equal(verdict, "IGNORE");
    }
}

static void check_cells(bool keeps_actions)
{
    for (size_t r = 1; r < expected.row_count; r++) {
        for (size_t c = 1; c < expected.column_count; c++) {
            const char *now = expected.cells[r][0];
            world_start_manual(&world);
            if (keeps_actions) {
                world_keep_actions(&world);
            }
            world_put(&world, 1, status_of(now));
            print_message("%s + %s: %s\n", now, expected.cells[0][c], expected.cells[r][c]);
            let_it_happen(&world, event_of(expected.cells[0][c]));
            expect(&world, expected.cells[r][c], now);
        }
    }
}

/* With captures of their own the attempt's table is the same: its success is then a capture's. */
static void every_cell_happens(void **state)
{
    (void)state;
    check_cells(false);
    check_cells(true);
}

/* -------------------------------------------------------------------------------- least evidence
 */

/* "Least evidence: PRC, ACT, APR, AUT, SUC, DEC, FAI, CAN need SYNC_RESPONSE; XPA, REV need
 * WEBHOOK; NFD is QUERY only. Weaker is R." And SUB, NSN, UNK, AEX are our own words. */
static const struct {
    const char *events;
    enum pay_evidence least, most;
} evidence_rows[] = {
    {"PRC ACT APR AUT SUC DEC FAI CAN", PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    {"XPA REV", PAY_EVIDENCE_WEBHOOK, PAY_EVIDENCE_CONTROLLED},
    {"NFD", PAY_EVIDENCE_QUERY, PAY_EVIDENCE_QUERY},
    {"SUB NSN UNK", PAY_EVIDENCE_LOCAL, PAY_EVIDENCE_LOCAL},
};

static void check_level(enum pay_attempt_event event, enum pay_evidence level, bool is_admissible)
{
    world_start_manual(&world);
    world_put(&world, 1, PAY_ATTEMPT_SUBMITTED);
    world_say(&world, said_by[event].type, 1, level);
    if (is_admissible) {
        assert_string_not_equal(world.out.reason_code, "EVIDENCE_NOT_ADMISSIBLE");
        return;
    }
    assert_verdict(&world, REJECT, "EVIDENCE_NOT_ADMISSIBLE");
    assert_true(world.out.security);
    assert_status(&world, 1, SUBMITTED);
}

static void check_evidence(enum pay_attempt_event event, enum pay_evidence least,
                           enum pay_evidence most)
{
    assert_int_equal(pay_attempt_least_evidence(event), least);
    assert_int_equal(pay_attempt_most_evidence(event), most);
    for (int level = PAY_EVIDENCE_LOCAL; level < PAY_EVIDENCE_COUNT; level++) {
        check_level(event, (enum pay_evidence)level, level >= (int)least && level <= (int)most);
    }
}

static void weaker_evidence_is_rejected(void **state)
{
    (void)state;
    int checked = 0;
    for (size_t i = 0; i < sizeof evidence_rows / sizeof evidence_rows[0]; i++) {
        for (const char *name = evidence_rows[i].events; name != NULL; name = strchr(name, ' ')) {
            char event[4] = {0};
            name += *name == ' ' ? 1 : 0;
            memcpy(event, name, 3);
            check_evidence(event_of(event), evidence_rows[i].least, evidence_rows[i].most);
            checked++;
        }
    }
    assert_int_equal(checked, PAY_AE_COUNT - 1); /* AEX is a deadline, never an event. */
}

static int read_expected(void **state)
{
    (void)state;
    table_text_read(&expected, "now \\ event");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_cell_stands_in_the_table),
        cmocka_unit_test(every_cell_happens),
        cmocka_unit_test(weaker_evidence_is_rejected),
    };
    return cmocka_run_group_tests_name("attempt_table", tests, read_expected, NULL);
}
