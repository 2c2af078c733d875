/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide_parts.h"

#include <string.h>

#include "common/core/approval.h"
#include "common/core/control.h"

#include "common/base/banned.h"

/* Two people: the commands that wait for them, and the words that count. */

static void not_allowed(struct pay_turn *turn, const char *reason_code)
{
    turn->out->security = true;
    pay_command_refuse(turn, reason_code);
}

/* ----------------------------------------------------------------------------------- the request
 */

static bool is_digest(struct pay_bytes bytes)
{
    return bytes.ptr != NULL && bytes.len == 32;
}

static const char *check_attachments(const struct pay_cmd_controlled *wish)
{
    if (wish->attachment_count == 0 || wish->attachment_count > PAY_ATTACHMENTS_MAX) {
        return "ATTACHMENT_MISSING";
    }
    for (size_t i = 0; i < wish->attachment_count; i++) {
        const struct pay_attachment *attachment = &wish->attachments[i];
        if (attachment->reference.ptr == NULL || attachment->reference.len == 0 ||
            !is_digest(attachment->sha256)) {
            return "ATTACHMENT_MISSING";
        }
    }
    return NULL;
}

static const char *check_request(const struct pay_turn *turn)
{
    const struct pay_cmd_controlled *wish = &turn->in->command->controlled;
    const bool is_case = turn->in->command->type == PAY_CMD_RESOLVE_CASE;
    struct pay_approval_request request = {.request_id = ""};
    const bool is_known = is_case ? pay_resolution_is_known(wish->reason_code)
                                  : pay_control_reason_is_known(wish->reason_code);

    if (!is_known) {
        return "INVALID_REASON";
    }
    const char *reason = check_attachments(wish);
    reason = reason != NULL ? reason : pay_approval_blocked(turn);
    if (reason != NULL) {
        return reason;
    }
    if (!pay_request_fill(&request, turn->in->command)) {
        return "INVALID_COMMAND";
    }
    return pay_control_check(turn, &request);
}

/* A case that is not about money: one operator closes it. */
static bool resolve_at_once(struct pay_turn *turn)
{
    const struct pay_cmd_controlled *wish = &turn->in->command->controlled;
    char case_id[PAY_CAUSE_SIZE];

    if (turn->in->command->type != PAY_CMD_RESOLVE_CASE ||
        !pay_str_copy(case_id, sizeof case_id, wish->aggregate_id)) {
        return false;
    }
    const int index = pay_control_find_case(turn, case_id);
    if (index < 0 || !turn->snap->cases[index].open ||
        pay_case_is_money(turn->snap->cases[index].kind)) {
        return false;
    }
    if (!pay_resolution_is_known(wish->reason_code)) {
        pay_command_refuse(turn, "INVALID_REASON");
    } else if (wish->expected_version >= 0 &&
               wish->expected_version != turn->snap->cases[index].version) {
        pay_command_refuse(turn, "STALE_REQUEST");
    } else {
        char principal[PAY_NAME_SIZE] = "";
        char code[PAY_CODE_SIZE] = "";
        (void)pay_str_copy(principal, sizeof principal, turn->in->command->caller);
        (void)pay_str_copy(code, sizeof code, wish->reason_code);
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "ACCEPTED");
        pay_control_resolve(turn, index, principal, code);
        pay_command_answer(turn, PAY_VERDICT_APPLY, "ACCEPTED", case_id);
    }
    return true;
}

void pay_command_control(struct pay_turn *turn)
{
    if (turn->in->source != PAY_SOURCE_OPERATOR) {
        not_allowed(turn, "NOT_ALLOWED");
        return;
    }
    if (resolve_at_once(turn)) {
        return;
    }
    const char *reason = check_request(turn);
    if (reason != NULL) {
        pay_command_refuse(turn, reason);
        return;
    }
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "AWAITING_APPROVAL");
    const int index = pay_approval_begin(turn, NULL);
    pay_command_answer(turn, PAY_VERDICT_APPLY, "AWAITING_APPROVAL",
                       turn->snap->requests[index].request_id);
}

/* -------------------------------------------------------------------------------- APPROVE, DECLINE
 */

static int count_approvals(const struct pay_turn *turn, int index)
{
    int count = 0;
    for (size_t i = 0; i < turn->snap->approval_count; i++) {
        const struct pay_approval *approval = &turn->snap->approvals[i];
        count += approval->request_index == index && approval->approves ? 1 : 0;
    }
    return count;
}

static bool has_spoken(const struct pay_turn *turn, int index)
{
    for (size_t i = 0; i < turn->snap->approval_count; i++) {
        const struct pay_approval *approval = &turn->snap->approvals[i];
        if (approval->request_index == index &&
            pay_str_eq_c(turn->in->command->caller, approval->principal)) {
            return true;
        }
    }
    return false;
}

/* @return why this word does not count; NULL: it does. */
static const char *check_word(const struct pay_turn *turn, int index, bool *ret_is_attack)
{
    const struct pay_cmd_approval *word = &turn->in->command->approval;

    *ret_is_attack = false;
    if (index < 0) {
        return "UNKNOWN_REQUEST";
    }
    const struct pay_approval_request *request = &turn->snap->requests[index];
    *ret_is_attack = true;
    if (PAY_GUARD(APPROVAL_DIGEST,
                  !is_digest(word->request_sha256) ||
                      memcmp(word->request_sha256.ptr, request->sha256, 32) != 0)) {
        return "DIGEST_MISMATCH";
    }
    if (PAY_GUARD(APPROVAL_OWN, pay_str_eq_c(turn->in->command->caller, request->requested_by))) {
        return "OWN_REQUEST";
    }
    *ret_is_attack = false;
    if (request->status != PAY_REQUEST_PENDING) {
        return "REQUEST_CLOSED";
    }
    if (turn->in->now_us >= request->expires_at_us) {
        return "REQUEST_EXPIRED"; /* Its deadline ends it. */
    }
    return PAY_GUARD(APPROVAL_TWICE, has_spoken(turn, index)) ? "ALREADY_COUNTED" : NULL;
}

static void count_word(struct pay_turn *turn, int index, bool approves)
{
    struct pay_snapshot *snap = turn->snap;

    PAY_ASSERT(snap->approval_count < snap->approval_cap);
    struct pay_approval *approval = &snap->approvals[snap->approval_count++];
    memset(approval, 0, sizeof *approval);
    approval->change = PAY_ROW_INSERTED;
    approval->request_index = index;
    approval->approves = approves;
    approval->decided_at_us = turn->in->now_us;
    (void)pay_str_copy(approval->principal, sizeof approval->principal, turn->in->command->caller);
    (void)pay_str_copy(approval->command_id, sizeof approval->command_id,
                       turn->in->command->command_id);
}

/* It was reserved when it was asked for; now it may be sent. */
static const char *send_refund(struct pay_turn *turn, const struct pay_approval_request *request)
{
    const struct pay_money_ref ref = pay_money_find(turn, pay_str_of(request->aggregate_id));

    if (ref.index < 0 || ref.kind != PAY_MONEY_REFUND ||
        pay_money_at(turn, ref)->status != PAY_MONEY_CREATED || pay_money_gate(turn, ref) != NULL) {
        return "STALE_REQUEST";
    }
    struct pay_money_action *refund = pay_money_at(turn, ref);
    const int64_t life_us = refund->give_up_at_us - refund->created_at_us;
    refund->give_up_at_us = pay_time_after(turn->in->now_us, life_us); /* From now on. */
    pay_row_touch(&refund->change);
    pay_money_send(turn, ref);
    return NULL;
}

/* The second word: what was asked for is done, on the rows as they are now. */
static void carry_out(struct pay_turn *turn, int index)
{
    struct pay_approval_request *request = &turn->snap->requests[index];
    const bool is_refund = request->type == PAY_CMD_REQUEST_REFUND;
    const char *reason = is_refund ? NULL : pay_control_check(turn, request);

    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "APPROVED");
    if (reason == NULL && is_refund) {
        reason = send_refund(turn, request);
    } else if (reason == NULL) {
        pay_control_apply(turn, request);
    }
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "APPROVED");
    pay_approval_end(turn, index, reason == NULL ? PAY_REQUEST_APPROVED : PAY_REQUEST_STALE,
                     reason == NULL ? "APPROVED" : reason);
    if (reason == NULL) {
        pay_command_answer(turn, PAY_VERDICT_APPLY, "APPROVED", request->request_id);
    } else { /* The rows are not as it expected: it must be asked for again. */
        pay_command_refuse(turn, "STALE_REQUEST");
    }
}

static void decide_word(struct pay_turn *turn, bool approves)
{
    const int index = pay_approval_find(turn, turn->in->command->approval.request_id);
    bool is_attack = false;

    if (turn->in->source != PAY_SOURCE_OPERATOR) {
        not_allowed(turn, "NOT_ALLOWED");
        return;
    }
    const char *reason = check_word(turn, index, &is_attack);
    if (reason != NULL) {
        turn->out->security |= is_attack;
        pay_command_refuse(turn, reason);
        return;
    }
    const struct pay_approval_request *request = &turn->snap->requests[index];
    count_word(turn, index, approves);
    if (!approves) {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "DECLINED");
        pay_approval_end(turn, index, PAY_REQUEST_DECLINED, "DECLINED");
        pay_approval_withdraw_refund(turn, index, "DECLINED");
        pay_command_answer(turn, PAY_VERDICT_APPLY, "DECLINED", request->request_id);
    } else if (count_approvals(turn, index) >= PAY_APPROVALS_NEEDED) {
        carry_out(turn, index);
    } else {
        pay_command_answer(turn, PAY_VERDICT_APPLY, "APPROVAL_COUNTED", request->request_id);
    }
}

void pay_command_approve(struct pay_turn *turn)
{
    decide_word(turn, true);
}

void pay_command_decline(struct pay_turn *turn)
{
    decide_word(turn, false);
}
