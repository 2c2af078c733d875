/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/refund_sum.h"

#include <string.h>

#include "common/core/amounts.h"
#include "common/core/attempt.h"
#include "common/core/decide_parts.h"
#include "common/core/id.h"

#include "common/base/banned.h"

#define KEY_SIZE (PAY_ACTION_ID_SIZE + 24)

static void put(char *dst, size_t size, size_t *at, struct pay_str text)
{
    const size_t room = size - 1 - *at;
    const size_t len = text.len < room ? text.len : room;
    memcpy(dst + *at, text.ptr, len);
    *at += len;
    dst[*at] = 0;
}

struct pay_str pay_refund_psp_key(char *dst, size_t size, const struct pay_attempt *attempt,
                                  const struct pay_event *event)
{
    const struct pay_str reference = event->provider_action_id;
    const bool is_named = reference.ptr != NULL && reference.len > 0;
    size_t at = 0;

    put(dst, size, &at, pay_str_of(attempt->psp));
    put(dst, size, &at, PAY_STR("/"));
    put(dst, size, &at, pay_str_of(attempt->psp_account));
    put(dst, size, &at, PAY_STR("/"));
    /* Nameless: only an attempt's first capture comes like that, and it comes once. */
    put(dst, size, &at, is_named ? reference : pay_str_of(attempt->attempt_id));
    return (struct pay_str){dst, at};
}

/* What we know to have been refunded at one time or another: a sum that was true then is no news.
 */
static int64_t known_sum(const struct pay_turn *turn, int attempt_index)
{
    struct pay_money_ref ref = {PAY_MONEY_REFUND, 0};
    int64_t sum = 0;

    for (; (size_t)ref.index < turn->snap->refund_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        const bool was_done =
            action->status == PAY_MONEY_SUCCEEDED || action->status == PAY_MONEY_REVERSED;
        if (action->attempt_index == attempt_index && was_done &&
            !pay_money_add(sum, action->amount.amount_minor, &sum)) {
            return INT64_MAX;
        }
    }
    return sum;
}

/* @return whether a refund of the attempt is open; each is asked about. */
static bool ask_open(struct pay_turn *turn, int attempt_index, bool asks)
{
    struct pay_money_ref ref = {PAY_MONEY_REFUND, 0};
    bool is_open = false;

    for (; (size_t)ref.index < turn->snap->refund_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index != attempt_index || !pay_money_is_open(action->status)) {
            continue;
        }
        is_open = true;
        if (asks && action->status != PAY_MONEY_CREATED) {
            pay_money_query(turn, ref);
        }
    }
    return is_open;
}

static void over_refund(struct pay_turn *turn, int attempt_index)
{
    pay_turn_verdict(turn, PAY_VERDICT_NEEDS_RECONCILIATION, "OVER_REFUND");
    pay_decide_record_attempt(turn, attempt_index);
    (void)pay_case_open(turn, PAY_CASE_OVER_REFUND, attempt_index, 0);
}

/* The difference, keyed (attempt, sum). */
static void make_difference(struct pay_turn *turn, int attempt_index, int64_t sum_minor)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const int64_t difference = sum_minor - known_sum(turn, attempt_index);
    char key[KEY_SIZE];
    char sum[32];
    size_t at = 0;

    if (!pay_money_has_room(turn, PAY_MONEY_REFUND) ||
        !pay_amounts_hold_refund(&attempt->amounts, difference)) {
        over_refund(turn, attempt_index);
        return;
    }
    attempt->amounts_changed = true;
    pay_row_touch(&attempt->change);
    pay_money_format(sum_minor, 0, sum);
    put(key, sizeof key, &at, pay_str_of(attempt->attempt_id));
    put(key, sizeof key, &at, PAY_STR("/"));
    put(key, sizeof key, &at, pay_str_of(sum));
    struct pay_money amount = attempt->amount;
    amount.amount_minor = difference;
    pay_turn_verdict(turn, PAY_VERDICT_APPLY, "REFUNDED_AT_PSP");
    const struct pay_money_ref ref =
        pay_money_begin(turn, &(struct pay_money_new){.kind = PAY_MONEY_REFUND,
                                                      .attempt_index = attempt_index,
                                                      .amount = amount,
                                                      .origin = PAY_ORIGIN_PSP,
                                                      .key = {key, at}});
    pay_money_move(turn, ref, PAY_MONEY_SUCCEEDED, turn->evidence, "REFUNDED_AT_PSP");
}

/* A sum is what the PSP had paid back when it was asked: what we learned later may not be in it,
 * and a difference to that is nobody's refund. */
static bool is_older_than_a_refund(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_call *call = &turn->in->event->call;
    struct pay_money_ref ref = {PAY_MONEY_REFUND, 0};

    for (; (size_t)ref.index < turn->snap->refund_count; ref.index++) {
        const struct pay_money_action *action = pay_money_at(turn, ref);
        if (action->attempt_index == attempt_index &&
            (!call->is_set || call->asked_at_us <= action->changed_at_us)) {
            return true;
        }
    }
    return false;
}

void pay_refund_sum_explain(struct pay_turn *turn, int attempt_index)
{
    const struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);

    if (attempt->refund_sum_minor <= known_sum(turn, attempt_index) ||
        PAY_GUARD(REFUND_SUM, ask_open(turn, attempt_index, false))) {
        return;
    }
    if (PAY_GUARD(REFUND_SUM_NEW, pay_turn_traits(turn, attempt_index)->queries_refunds)) {
        pay_attempt_query(turn, attempt_index); /* That sum is from before: it is asked for anew. */
    } else {
        make_difference(turn, attempt_index, attempt->refund_sum_minor);
    }
}

static const char *not_admissible(const struct pay_turn *turn, const struct pay_attempt *attempt)
{
    const struct pay_event *event = turn->in->event;
    struct pay_money same = attempt->amount;

    if (PAY_GUARD(ACCOUNT, !pay_str_eq_c(event->psp, attempt->psp) ||
                               !pay_str_eq_c(event->psp_account, attempt->psp_account))) {
        return "WRONG_ACCOUNT";
    }
    if (PAY_GUARD(EVIDENCE, turn->evidence < PAY_EVIDENCE_SYNC_RESPONSE)) {
        return "EVIDENCE_NOT_ADMISSIBLE";
    }
    same.amount_minor = event->amount.amount_minor;
    return !event->has_amount || event->amount.amount_minor < 0 ||
                   !pay_money_same(same, event->amount)
               ? "AMOUNT_MISMATCH"
               : NULL;
}

static void ignore(struct pay_turn *turn, int attempt_index, const char *reason_code)
{
    pay_turn_verdict(turn, PAY_VERDICT_IGNORE, reason_code);
    pay_decide_record_attempt(turn, attempt_index);
}

void pay_refund_sum_decide(struct pay_turn *turn, int attempt_index)
{
    struct pay_attempt *attempt = pay_turn_attempt(turn, attempt_index);
    const char *why_not = not_admissible(turn, attempt);
    const int64_t sum = turn->in->event->amount.amount_minor;

    if (why_not != NULL) {
        pay_turn_verdict(turn, PAY_VERDICT_REJECT, why_not);
        turn->out->security = true;
        pay_decide_record_attempt(turn, attempt_index);
        return;
    }
    if (sum <= known_sum(turn, attempt_index)) {
        ignore(turn, attempt_index, "STALE");
        return;
    }
    const bool is_open = ask_open(turn, attempt_index, true);
    const bool is_asked = pay_turn_traits(turn, attempt_index)->queries_refunds;
    if (is_asked && turn->evidence < PAY_EVIDENCE_QUERY) {
        ignore(turn, attempt_index, "SUM_TO_BE_CONFIRMED"); /* It may be older than a reversal. */
        pay_attempt_query(turn, attempt_index);
        return;
    }
    if (sum > attempt->refund_sum_minor) {
        attempt->refund_sum_minor = sum;
        attempt->amounts_changed = true;
        pay_row_touch(&attempt->change);
    }
    if (PAY_GUARD(REFUND_SUM, is_open)) {
        ignore(turn, attempt_index, "REFUNDS_OPEN");
    } else if (PAY_GUARD(REFUND_SUM_NEW, is_asked && is_older_than_a_refund(turn, attempt_index))) {
        /* The next question in its time: asked at once, the answer may be as old again where the
         * asker's clock is behind. */
        ignore(turn, attempt_index, "SUM_TO_BE_CONFIRMED");
        pay_job_until_answered(turn, attempt_index, attempt->attempt_id);
    } else {
        make_difference(turn, attempt_index, sum);
    }
}

bool pay_refund_sum_explains(struct pay_turn *turn, int attempt_index)
{
    const struct pay_event *event = turn->in->event;
    struct pay_money_ref ref = {PAY_MONEY_REFUND, 0};

    for (; (size_t)ref.index < turn->snap->refund_count; ref.index++) {
        struct pay_money_action *action = pay_money_at(turn, ref);
        const bool is_of_sum = action->origin == PAY_ORIGIN_PSP &&
                               action->provider_reference[0] == 0 &&
                               action->attempt_index == attempt_index;
        if (!is_of_sum || event->amount.amount_minor > action->amount.amount_minor) {
            continue;
        }
        if (event->amount.amount_minor == action->amount.amount_minor &&
            pay_str_copy(action->provider_reference, sizeof action->provider_reference,
                         event->provider_action_id)) {
            pay_row_touch(&action->change);
        }
        return true;
    }
    return false;
}
