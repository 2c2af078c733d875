/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide.h"

#include "common/core/admit.h"
#include "common/core/amounts.h"
#include "common/core/decide_parts.h"
#include "common/core/money_action.h"

#include "common/base/banned.h"

static void check_attempt(const struct pay_attempt *attempt)
{
    PAY_INVARIANT(pay_amounts_hold(&attempt->amounts));
    PAY_INVARIANT((attempt->status == PAY_ATTEMPT_UNKNOWN) == (attempt->unknown_since_us != 0));
    PAY_INVARIANT(!attempt->live || (attempt->status != PAY_ATTEMPT_FAILED &&
                                     attempt->status != PAY_ATTEMPT_CANCELED));
}

static void check_actions(const struct pay_turn *turn, enum pay_money_kind kind)
{
    struct pay_money_ref ref = {kind, 0};

    for (; (size_t)ref.index < pay_money_count(turn, kind); ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        PAY_INVARIANT((action->status == PAY_MONEY_UNKNOWN) == (action->unknown_since_us != 0));
    }
}

static bool reserves(const struct pay_money_action *actions, size_t count, int attempt_index,
                     int64_t reserved_minor)
{
    int64_t sum = 0;
    bool fits = true;

    for (size_t i = 0; i < count && fits; i++) {
        if (actions[i].attempt_index == attempt_index && pay_money_is_open(actions[i].status)) {
            fits = pay_money_add(sum, actions[i].amount.amount_minor, &sum);
        }
    }
    return fits && sum == reserved_minor;
}

bool pay_snapshot_adds_up(const struct pay_snapshot *snapshot)
{
    bool hold = true;

    for (int i = 0; (size_t)i < snapshot->attempt_count && hold; i++) {
        const struct pay_amounts *a = &snapshot->attempts[i].amounts;
        hold = reserves(snapshot->captures, snapshot->capture_count, i, a->capture_reserved) &&
               reserves(snapshot->refunds, snapshot->refund_count, i, a->refund_reserved);
    }
    return hold;
}

/* Our own result, never what a message said: only rows that this payment's decisions wrote. */
static void check_result(const struct pay_turn *turn, int64_t sequence_before)
{
    int64_t sequence = sequence_before;
    int live = 0;

    for (size_t i = 0; i < turn->snap->attempt_count; i++) {
        if (turn->snap->attempts[i].change != PAY_ROW_SAME) {
            check_attempt(&turn->snap->attempts[i]);
        }
        live += turn->snap->attempts[i].live ? 1 : 0;
    }
    PAY_INVARIANT(live <= 1);
    check_actions(turn, PAY_MONEY_CAPTURE);
    check_actions(turn, PAY_MONEY_REFUND);
    PAY_INVARIANT(!turn->snap->keeps_actions || pay_snapshot_adds_up(turn->snap));
    for (size_t i = 0; i < turn->out->effect_count; i++) {
        const struct pay_effect *effect = &turn->out->effects[i];
        if (effect->kind == PAY_EFFECT_FACT && effect->as.fact.sequence != 0) {
            sequence++;
            PAY_ASSERT(effect->as.fact.sequence == sequence); /* Gapless. */
        }
    }
    PAY_ASSERT(turn->snap->order.event_sequence == sequence);
    PAY_ASSERT(turn->out->history_count > 0 || turn->out->orphan);
}

void pay_decide(struct pay_snapshot *snapshot, const struct pay_decide_input *input,
                struct pay_decision *ret_decision)
{
    struct pay_turn turn = {.snap = snapshot,
                            .in = input,
                            .out = ret_decision,
                            .evidence = pay_admit_evidence(input),
                            .event_name = "?"};
    const int64_t sequence_before = snapshot->order.event_sequence;

    ret_decision->verdict = PAY_VERDICT_IGNORE;
    ret_decision->reason_code = "?";
    ret_decision->security = false;
    ret_decision->orphan = false;
    ret_decision->foreign = false;
    ret_decision->effect_count = 0;
    ret_decision->history_count = 0;
    switch (input->kind) {
    case PAY_INPUT_EVENT:
        pay_decide_event(&turn);
        break;
    case PAY_INPUT_COMMAND:
        pay_decide_command(&turn);
        break;
    case PAY_INPUT_REJECTED_COMMAND:
        pay_decide_rejected_command(&turn);
        break;
    case PAY_INPUT_DEADLINE:
        pay_decide_deadline(&turn);
        break;
    default:
        PAY_ASSERT(false); /* The caller's kinds, not a message's. */
    }
    check_result(&turn, sequence_before);
}
