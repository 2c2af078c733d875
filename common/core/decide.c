/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide.h"

#include "common/core/admit.h"
#include "common/core/decide_parts.h"

#include "common/base/banned.h"

static void check_attempt(const struct pay_attempt *attempt)
{
    const struct pay_amounts *a = &attempt->amounts;
    int64_t sum = 0;

    PAY_INVARIANT(a->authorized >= 0 && a->capture_reserved >= 0 && a->captured >= 0);
    PAY_INVARIANT(a->refund_reserved >= 0 && a->refunded >= 0 && a->withdrawn >= 0);
    PAY_INVARIANT(pay_money_add(a->captured, a->capture_reserved, &sum) && sum <= a->authorized);
    PAY_INVARIANT(pay_money_add(a->refunded, a->refund_reserved, &sum) && sum <= a->captured);
    PAY_INVARIANT((attempt->status == PAY_ATTEMPT_UNKNOWN) == (attempt->unknown_since_us != 0));
    PAY_INVARIANT(!attempt->live || (attempt->status != PAY_ATTEMPT_FAILED &&
                                     attempt->status != PAY_ATTEMPT_CANCELED));
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
