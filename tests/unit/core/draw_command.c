/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/draw.h"

void draw_merchant_command(struct world *w)
{
    static const enum pay_command_type types[] = {PAY_CMD_START_ATTEMPT, PAY_CMD_CHANGE_METHOD,
                                                  PAY_CMD_CONTINUE_ATTEMPT, PAY_CMD_CANCEL_PAYMENT,
                                                  PAY_CMD_CREATE_PAYMENT};
    static const char *const ids[] = {WORLD_PAYMENT "A01", WORLD_PAYMENT "A02", "x"};

    world_command(w,
                  draw_one_in(6) ? (enum pay_command_type)draw_pick(PAY_CMD_COUNT) : ONE_OF(types));
    w->command.attempt_id = pay_str_of(ONE_OF(ids));
    w->command.reason_code = PAY_STR("CUSTOMER_LEFT");
    w->input.routes = &w->offered[draw_pick(6)];
    w->input.route_count = (size_t)(draw_one_in(8) ? 0 : 1);
    w->input.refusal = pay_str_of(draw_one_in(30) ? "UNKNOWN_ROUTE" : NULL);
    if (draw_one_in(30)) {
        w->input.kind = PAY_INPUT_REJECTED_COMMAND;
        w->input.refusal = PAY_STR("NOT_ALLOWED");
    }
    if (draw_one_in(30)) {
        w->command.merchant_id = PAY_STR("merchant-2");
    }
    world_decide_command(w);
}

/* Whoever asks for approval must say of which bytes. */
static void spoil_digest(struct world *w)
{
    if (draw_one_in(25)) {
        w->input.command_sha256.len = 31;
    } else if (draw_one_in(25)) {
        w->input.command_sha256.ptr = NULL;
    }
}

void draw_money_command(struct world *w)
{
    static const char *const keys[] = {"key-1", "key-2", "key-3"};
    static const char *const ids[] = {WORLD_PAYMENT "A01", WORLD_PAYMENT "A02", "x"};
    static const int64_t amounts[] = {WORLD_AMOUNT, 7000, 3000, 2000, 1000, 1, 0, -5, 10001};
    static const char long_key[PAY_IDEMPOTENCY_KEY_SIZE + 1];
    const bool captures =
        w->snap.order.capture_mode == PAY_CAPTURE_MANUAL ? !draw_one_in(3) : draw_one_in(8);

    world_command(w, captures ? PAY_CMD_CAPTURE : PAY_CMD_REQUEST_REFUND);
    w->command.money =
        (struct pay_cmd_money){.attempt_id = pay_str_of(draw_one_in(4) ? ONE_OF(ids) : NULL),
                               .amount = {ONE_OF(amounts), "EUR"},
                               .is_final = draw_one_in(2),
                               .reason_code = PAY_STR("RETURNED"),
                               .idempotency_key = pay_str_of(draw_one_in(3) ? ONE_OF(keys) : NULL)};
    if (draw_one_in(25)) {
        (void)snprintf(w->command.money.amount.currency, sizeof w->command.money.amount.currency,
                       "USD");
    }
    if (draw_one_in(20)) {
        w->command.money.idempotency_key =
            (struct pay_str){long_key, PAY_IDEMPOTENCY_KEY_SIZE - (size_t)draw_pick(2)};
    }
    if (draw_one_in(20)) {
        w->command.money.reason_code =
            (struct pay_str){long_key, PAY_CODE_SIZE - (size_t)draw_pick(2)};
    }
    w->input.key_taken = draw_one_in(25);
    if (draw_one_in(3)) {
        w->input.source = PAY_SOURCE_OPERATOR;
        w->command.caller = PAY_STR("operator-1");
    }
    spoil_digest(w);
    world_decide_command(w);
}

static bool exists(struct world *w, const char *tail)
{
    const size_t number = tail[0] == 0 ? 0 : (size_t)(tail[2] - '0');
    return draw_find_action(w, tail) != NULL ||
           (tail[0] == 'A' && number <= w->snap.attempt_count) ||
           (tail[0] == 'D' && w->snap.dispute_count > 0);
}

/* What the command is about, as it is; its status and version are what a person would have seen. */
static void aim(struct world *w, struct pay_cmd_controlled *wish)
{
    static const char *const tails[] = {"A01", "A02", "C01", "R01", "R02", "D01", ""};
    const char *tail = ONE_OF(tails);
    for (int i = 0; i < 4 && !exists(w, tail); i++) {
        tail = ONE_OF(tails);
    }
    const struct pay_money_action *action = draw_find_action(w, tail);

    wish->aggregate_id = pay_str_of(world_id(tail));
    wish->from_status = pay_str_of(pay_order_status_name(w->snap.order.status));
    for (size_t i = 0; i < w->snap.attempt_count; i++) {
        if (strcmp(w->attempts[i].attempt_id + 26, tail) == 0) {
            wish->expected_version = w->attempts[i].version;
            wish->from_status = pay_str_of(pay_attempt_status_name(w->attempts[i].status));
        }
    }
    if (action != NULL) {
        wish->expected_version = action->version;
        wish->from_status = pay_str_of(pay_money_status_name(action->status));
    }
    if (w->snap.dispute_count > 0 && tail[0] == 'D') {
        wish->expected_version = w->disputes[0].version;
        wish->from_status = pay_str_of(pay_dispute_status_name(w->disputes[0].status));
    }
}

static void attach(struct pay_cmd_controlled *wish)
{
    static const size_t counts[] = {0, 1, 1, 1, 1, 2, PAY_ATTACHMENTS_MAX, PAY_ATTACHMENTS_MAX + 1};

    if (!draw_one_in(6)) {
        return;
    }
    wish->attachment_count = ONE_OF(counts);
    for (size_t i = 1; i < PAY_ATTACHMENTS_MAX; i++) {
        wish->attachments[i] = wish->attachments[0];
    }
    if (draw_one_in(6)) {
        wish->attachments[draw_pick(2)].reference =
            draw_one_in(2) ? PAY_STR("") : (struct pay_str){0};
    } else if (draw_one_in(6)) {
        wish->attachments[draw_pick(2)].sha256.len = 31;
    }
}

void draw_operator_command(struct world *w)
{
    static const enum pay_command_type types[] = {
        PAY_CMD_FORCE_CLOSE_UNKNOWN, PAY_CMD_CORRECT_STATE,  PAY_CMD_CORRECT_STATE,
        PAY_CMD_RELEASE_RESERVATION, PAY_CMD_OVERRIDE_BLOCK, PAY_CMD_RESOLVE_CASE};
    static const char *const callers[] = {"operator-1", "operator-2", "operator-3"};
    static const char *const statuses[] = {"SUCCEEDED", "FAILED",  "CANCELED", "REVERSED", "WON",
                                           "LOST",      "EXPIRED", "UNKNOWN",  "odd"};
    static char case_id[PAY_CAUSE_SIZE];
    const enum pay_command_type type = ONE_OF(types);
    struct pay_cmd_controlled *wish = &world_operator_command(w, type, ONE_OF(callers))->controlled;

    aim(w, wish);
    if (type == PAY_CMD_RESOLVE_CASE && w->snap.case_count > 0) {
        const struct pay_case *which = &w->cases[draw_pick((int)w->snap.case_count)];
        (void)snprintf(case_id, sizeof case_id, "%s", which->case_id);
        wish->aggregate_id = pay_str_of(case_id);
        wish->expected_version = which->version;
    }
    wish->expected_version += draw_one_in(8) ? 1 : 0;
    wish->to_status = pay_str_of(ONE_OF(statuses));
    wish->has_amount = draw_one_in(2);
    wish->amount = (struct pay_money){draw_one_in(2) ? WORLD_AMOUNT : 1 + draw_pick(12000), "EUR"};
    wish->provider_reference = pay_str_of(draw_one_in(2) ? "pi_1" : NULL);
    wish->reason_code = draw_one_in(25) ? PAY_STR("BECAUSE") : wish->reason_code;
    attach(wish);
    spoil_digest(w);
    world_decide_command(w);
}

/* What an operator asks for, and at once what two others say to it. */
void draw_two_people(struct world *w, FILE *out)
{
    static const char *const callers[] = {"operator-1", "operator-2", "operator-3"};
    char request_id[PAY_CAUSE_SIZE];
    const size_t before = w->snap.request_count;

    if (draw_one_in(3)) {
        draw_money_command(w);
    } else {
        draw_operator_command(w);
    }
    for (int i = 0; i < 3 && w->snap.request_count > before; i++) {
        trace_print(out, w);
        (void)snprintf(request_id, sizeof request_id, "%s", w->requests[before].request_id);
        world_word(w, PAY_CMD_APPROVE, callers[i], request_id);
    }
}

void draw_word(struct world *w)
{
    static const char *const callers[] = {"operator-1", "operator-2", "operator-3"};
    static char request_id[PAY_CAUSE_SIZE];
    const int count = (int)w->snap.request_count;

    (void)snprintf(request_id, sizeof request_id, "%s",
                   count == 0 || draw_one_in(20) ? "shop/none"
                                                 : w->requests[draw_pick(count)].request_id);
    world_word(w, draw_one_in(6) ? PAY_CMD_DECLINE : PAY_CMD_APPROVE, ONE_OF(callers), request_id);
}
