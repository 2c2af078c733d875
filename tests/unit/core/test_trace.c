/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: nothing that the core decides changes unseen. Walks over everything that can come in (as
 * plausible as often as not, the walk's number is its seed) are printed field by field, and the
 * digest of each walk is compared with trace.txt. That it is the right thing is what the other
 * tests say; that it is the same thing is said here, to the last deadline and history row.
 *
 *     test_unit_core_trace --print 17     the whole of walk 17, to compare two versions of the core
 *     test_unit_core_trace --write FILE   after an intended change
 */
#include "tests/unit/core/draw.h"

#include <stdlib.h>

#include "common/base/hash.h"

#define WALKS 1000
#define STEPS 60

static struct world world;
static FILE *printed;

/* ------------------------------------------------------------------------------------------ steps
 */

static void random_due(struct world *w)
{
    if (w->row_count > 0) {
        const struct world_row row = w->rows[draw_pick((int)w->row_count)];
        world_wait_for_id(w, row.kind, row.aggregate_id);
    }
}

/* One that comes too early, or of a row that is not there any more. */
static void odd_due(struct world *w)
{
    static const char *const tails[] = {"", "A01", "A02", "C01", "R01", "R02", "D01"};
    static char id[PAY_CAUSE_SIZE];
    const bool is_known = w->row_count > 0 && !draw_one_in(3);
    const struct world_row *row = is_known ? &w->rows[draw_pick((int)w->row_count)] : NULL;
    enum pay_deadline_kind kind =
        is_known ? row->kind : (enum pay_deadline_kind)draw_pick(PAY_DEADLINE_KIND_COUNT);
    const int64_t due_at_us = is_known ? row->due_at_us : w->now_us;

    (void)snprintf(id, sizeof id, "%s", is_known ? row->aggregate_id : world_id(ONE_OF(tails)));
    if (!is_known && w->snap.request_count > 0 && draw_one_in(3)) {
        (void)snprintf(id, sizeof id, "%s",
                       w->requests[draw_pick((int)w->snap.request_count)].request_id);
        kind = draw_one_in(4) ? kind : PAY_DEADLINE_APPROVAL;
    }
    world_command(w, PAY_CMD_CANCEL_PAYMENT); /* Begins an input, with a cause of its own. */
    w->input.kind = PAY_INPUT_DEADLINE;
    w->input.command = NULL;
    w->input.now_us = w->now_us;
    w->input.deadline =
        (struct pay_deadline_due){.kind = kind,
                                  .aggregate_id = pay_str_of(id),
                                  .due_at_us = due_at_us,
                                  .row_due_at_us = is_known || draw_one_in(2) ? due_at_us : 0};
    world_turn(w);
}

static bool pass_or_free(struct world *w)
{
    if (w->snap.gate_count == 0) {
        return false;
    }
    struct pay_gate *gate = &w->gates[draw_pick((int)w->snap.gate_count)];
    if (gate->sending_at_us == 0 && gate->closed_at_us == 0 && w->now_us < gate->not_after_us) {
        gate->sending_at_us = w->now_us;
        gate->last_send_at_us = w->now_us;
        gate->sends++;
    } else if (gate->sends == 1 && !gate->finished && draw_one_in(4)) {
        gate->sending_at_us = 0; /* A first send that certainly did not leave. */
    } else {
        gate->finished = gate->sends > 0 && draw_one_in(4);
    }
    return false;
}

static void two_people(struct world *w)
{
    draw_two_people(w, printed);
}

static void word(struct world *w)
{
    if (w->snap.request_count == 0 && !draw_one_in(8)) {
        two_people(w);
    } else {
        draw_word(w);
    }
}

/* @return whether something was decided. */
static bool step(struct world *w)
{
    typedef void decide_fn(struct world *);
    static decide_fn *const makers[] = {draw_attempt_event, draw_attempt_event,
                                        draw_attempt_event, draw_action_event,
                                        draw_action_event,  draw_merchant_command,
                                        draw_money_command, random_due,
                                        random_due,         odd_due};
    static decide_fn *const with_people[] = {draw_operator_command, word, two_people, two_people,
                                             draw_dispute_event};

    w->now_us += draw_pick(30) * SECOND;
    if (w->snap.attempt_count == 0) {
        draw_merchant_command(w);
        return true;
    }
    if (draw_one_in(6)) {
        return pass_or_free(w);
    }
    if (w->snap.request_count > 30 || !draw_one_in(3)) {
        ONE_OF(makers)(w);
    } else {
        ONE_OF(with_people)(w);
    }
    return true;
}

static void name_route(struct pay_route *route, const char *account, const char *method)
{
    (void)snprintf(route->psp, sizeof route->psp, "psp0");
    (void)snprintf(route->psp_account, sizeof route->psp_account, "%s", account);
    (void)snprintf(route->method, sizeof route->method, "%s", method);
}

static void vary(struct world *w)
{
    name_route(&w->offered[3], "account-0", "wallet"); /* Like the first but for one word. */
    name_route(&w->offered[4], "account-4", "card");
    for (int i = 0; i < 3 + PAY_ROUTES_MAX; i++) {
        struct pay_route *route = i < 3 ? &w->routes[i] : &w->offered[i - 3];
        struct pay_psp_traits *t = &route->traits;
        t->can_cancel = !draw_one_in(3);
        t->confirm_moves_money = draw_one_in(3);
        t->finds_by_request_no = !draw_one_in(4);
        t->captures_part = !draw_one_in(4);
        t->captures_again = draw_one_in(2);
        t->queries_captures = !draw_one_in(4);
        t->queries_refunds = !draw_one_in(4);
        t->finds_captures_by_no = !draw_one_in(4);
        t->finds_refunds_by_no = !draw_one_in(4);
        route->failover_on_not_found = draw_one_in(2);
        route->paused = draw_one_in(10);
    }
    w->policy.refund_threshold_minor = draw_one_in(2) ? INT64_MAX : 2500;
    w->policy.refund_threshold_day_minor = draw_one_in(2) ? INT64_MAX : 6000;
    w->policy.approval_life_us = draw_one_in(2) ? 0 : 500 * SECOND;
    w->policy.captures_at_end = draw_one_in(2);
    w->snap.order.retry_until_expiry = draw_one_in(2);
}

/* A payment that is asked for in every way, until one is taken. */
static void ask_for_payment(FILE *out, struct world *w)
{
    world_init(w);
    for (int i = 0; i < 12 && !w->snap.order.exists; i++) {
        struct pay_cmd_create_payment *create =
            &world_command(w, PAY_CMD_CREATE_PAYMENT)->create_payment;
        create->amount.amount_minor = draw_one_in(4) ? draw_pick(3) - 1 : WORLD_AMOUNT;
        (void)snprintf(create->amount.currency, sizeof create->amount.currency, "%s",
                       draw_one_in(4)   ? "JPY"
                       : draw_one_in(8) ? "XXY"
                                        : "EUR");
        create->capture_mode = draw_one_in(3) ? PAY_CAPTURE_MANUAL : PAY_CAPTURE_AUTOMATIC;
        create->expires_at_us = draw_one_in(3) ? w->now_us + SECOND * (draw_pick(200) - 100) : 0;
        create->retry_until_expiry = draw_pick(3) - 1;
        create->start = !draw_one_in(4);
        w->input.route_count = (size_t)draw_pick(4);
        w->input.policy.manual_capture = !draw_one_in(4);
        w->input.policy.amount_max_minor =
            draw_one_in(3) ? (int64_t[]){0, 1, 5000, WORLD_AMOUNT}[draw_pick(4)] : INT64_MAX;
        w->input.refusal = pay_str_of(draw_one_in(6) ? "UNKNOWN_ROUTE" : NULL);
        w->snap.order_no_taken = draw_one_in(6);
        world_decide_command(w);
        trace_print(out, w);
    }
}

static void begin(FILE *out, struct world *w, int number)
{
    switch (number % 5) {
    case 0:
        ask_for_payment(out, w);
        break;
    case 1:
        world_start(w);
        break;
    case 2:
        world_start_manual(w);
        break;
    case 3:
        world_paid(w);
        break;
    default:
        world_start_manual(w);
        world_keep_actions(w);
        world_put(w, 1, PAY_ATTEMPT_SUBMITTED);
        world_event(w, PAY_EV_ATTEMPT_AUTHORIZED, 1)->authorization_expires_at_us =
            w->now_us + SECOND * (100 + draw_pick(3000));
        world_decide(w, PAY_EVIDENCE_WEBHOOK);
        break;
    }
    if (number % 5 < 3 && number % 7 != 0) {
        world_keep_actions(w);
    }
    vary(w);
    if (number % 5 == 3 && draw_one_in(4)) {
        w->snap.order.paid_attempt_no = 0; /* A row from before that was written down. */
    }
}

static void walk(FILE *out, int number)
{
    printed = out;
    draw_begin((uint64_t)(number + 1) * UINT64_C(0x9E3779B97F4A7C15));
    begin(out, &world, number);
    for (int i = 0; i < STEPS && world.snap.order.exists; i++) {
        world.out.effect_count = 0;
        if (step(&world)) {
            trace_print(out, &world);
        }
    }
}

/* --------------------------------------------------------------------------------------- compare
 */

static void digest_of(int number, char *line, size_t size)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    walk(out, number);
    assert_int_equal(fclose(out), 0);
    (void)snprintf(line, size, "%d %zu %016llx\n", number, len,
                   (unsigned long long)pay_hash_fnv1a(0, (struct pay_bytes){(uint8_t *)text, len}));
    free(text);
}

/* @return the first walk that is decided otherwise than the file says; -1: none. */
static int first_other(FILE *file)
{
    char line[64];
    char kept[64];
    int number = 0;

    do {
        digest_of(number, line, sizeof line);
        if (fgets(kept, sizeof kept, file) == NULL || strcmp(line, kept) != 0) {
            return number;
        }
    } while (++number < WALKS);
    return fgets(kept, sizeof kept, file) == NULL ? -1 : WALKS;
}

static void every_walk_is_decided_as_it_was(void **state)
{
    (void)state;
    FILE *file = fopen(PAY_TEST_DATA "/unit/core/trace.txt", "r");

    if (file == NULL) {
        fail_msg("there is no trace.txt");
        return;
    }
    const int number = first_other(file);
    (void)fclose(file);
    if (number >= 0) {
        fail_msg("walk %d is decided otherwise: compare --print %d of both versions, --write the"
                 " file anew when it was meant",
                 number, number);
    }
}

static int write_all(const char *path)
{
    char line[64];
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return 1;
    }
    for (int number = 0; number < WALKS; number++) {
        digest_of(number, line, sizeof line);
        (void)fputs(line, file);
    }
    return fclose(file);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_walk_is_decided_as_it_was),
    };
    if (argc == 3 && strcmp(argv[1], "--print") == 0) {
        walk(stdout, (int)strtol(argv[2], NULL, 10));
        return 0;
    }
    if (argc == 3 && strcmp(argv[1], "--write") == 0) {
        return write_all(argv[2]);
    }
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
