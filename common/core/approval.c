/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/approval.h"

#include <string.h>

#include "common/core/decide_parts.h"
#include "common/core/id.h"

#include "common/base/banned.h"

#define APPROVAL_LIFE_US (INT64_C(86400) * 1000000) /* Unless the merchant's policy says. */

static int count_pending(const struct pay_turn *turn)
{
    int count = 0;
    for (size_t i = 0; i < turn->snap->request_count; i++) {
        count += turn->snap->requests[i].status == PAY_REQUEST_PENDING ? 1 : 0;
    }
    return count;
}

const char *pay_approval_blocked(const struct pay_turn *turn)
{
    struct pay_approval_request tried = {.request_id = ""};

    if (turn->in->command_sha256.ptr == NULL ||
        turn->in->command_sha256.len != sizeof tried.sha256 ||
        !pay_request_fill(&tried, turn->in->command)) {
        return "INVALID_COMMAND";
    }
    return count_pending(turn) >= PAY_REQUESTS_PENDING_MAX ? "LIMIT" : NULL;
}

static void record(struct pay_turn *turn, int index, const char *from, const char *reason_code)
{
    const struct pay_approval_request *request = &turn->snap->requests[index];

    (void)pay_turn_record(
        turn, &(struct pay_record){.aggregate = PAY_AGGREGATE_APPROVAL,
                                   .aggregate_id = request->request_id,
                                   PAY_RECORD_NONE,
                                   .from_status = from,
                                   .to_status = pay_request_status_name(request->status),
                                   .verdict = turn->out->verdict,
                                   .reason_code = reason_code});
}

int pay_approval_begin(struct pay_turn *turn, const char *aggregate_id)
{
    struct pay_snapshot *snap = turn->snap;
    const struct pay_command *command = turn->in->command;
    const int64_t life_us = turn->in->policy.approval_life_us;

    PAY_ASSERT(snap->request_count < snap->request_cap);
    const int index = (int)snap->request_count++;
    struct pay_approval_request *request = &snap->requests[index];
    memset(request, 0, sizeof *request);
    request->change = PAY_ROW_INSERTED;
    request->status = PAY_REQUEST_PENDING;
    request->created_at_us = turn->in->now_us;
    request->expires_at_us =
        pay_time_after(turn->in->now_us, life_us > 0 ? life_us : APPROVAL_LIFE_US);
    pay_id_cause(request->request_id, turn->in->cause);
    memcpy(request->sha256, turn->in->command_sha256.ptr, sizeof request->sha256);
    (void)pay_str_copy(request->requested_by, sizeof request->requested_by, command->caller);
    const bool fits = pay_request_fill(request, command);
    PAY_ASSERT(fits); /* pay_approval_blocked() said so. */
    if (aggregate_id != NULL) {
        pay_id_cause(request->aggregate_id, pay_str_of(aggregate_id));
    }
    record(turn, index, NULL, "AWAITING_APPROVAL");
    pay_deadline_set(turn, PAY_DEADLINE_APPROVAL, request->request_id, request->expires_at_us);
    return index;
}

void pay_approval_end(struct pay_turn *turn, int index, enum pay_request_status status,
                      const char *reason_code)
{
    struct pay_approval_request *request = &turn->snap->requests[index];

    request->status = status;
    request->decided_at_us = turn->in->now_us;
    pay_row_touch(&request->change);
    record(turn, index, pay_request_status_name(PAY_REQUEST_PENDING), reason_code);
    pay_deadline_clear(turn, PAY_DEADLINE_APPROVAL, request->request_id);
}

int pay_approval_find(const struct pay_turn *turn, struct pay_str request_id)
{
    for (size_t i = 0; i < turn->snap->request_count; i++) {
        if (pay_str_eq_c(request_id, turn->snap->requests[i].request_id)) {
            return (int)i;
        }
    }
    return -1;
}

void pay_approval_withdraw_refund(struct pay_turn *turn, int index, const char *reason_code)
{
    const struct pay_approval_request *request = &turn->snap->requests[index];
    if (request->type != PAY_CMD_REQUEST_REFUND) {
        return;
    }
    const struct pay_money_ref ref = pay_money_find(turn, pay_str_of(request->aggregate_id));
    if (ref.index >= 0 && pay_money_at(turn, ref)->status == PAY_MONEY_CREATED &&
        pay_money_gate(turn, ref) == NULL) {
        pay_money_withdraw(turn, ref, reason_code);
        pay_decide_money_moved(turn, ref, reason_code);
    }
}

void pay_approval_due(struct pay_turn *turn, int index)
{
    const struct pay_approval_request *request = &turn->snap->requests[index];

    if (request->status != PAY_REQUEST_PENDING) {
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "STALE");
        pay_deadline_clear(turn, PAY_DEADLINE_APPROVAL, request->request_id);
        record(turn, index, pay_request_status_name(request->status), "STALE");
    } else if (turn->in->now_us < request->expires_at_us) {
        pay_turn_verdict(turn, PAY_VERDICT_IGNORE, "NOT_EXPIRED");
        pay_deadline_set(turn, PAY_DEADLINE_APPROVAL, request->request_id, request->expires_at_us);
        record(turn, index, pay_request_status_name(request->status), "NOT_EXPIRED");
    } else {
        pay_turn_verdict(turn, PAY_VERDICT_APPLY, "APPROVAL_EXPIRED");
        pay_approval_end(turn, index, PAY_REQUEST_EXPIRED, "APPROVAL_EXPIRED");
        pay_approval_withdraw_refund(turn, index, "APPROVAL_EXPIRED");
    }
}
