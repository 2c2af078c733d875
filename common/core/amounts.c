/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/amounts.h"

#include "common/core/guard.h"

#include "common/base/banned.h"

bool pay_amounts_hold(const struct pay_amounts *a)
{
    int64_t taken = 0;
    int64_t given_back = 0;

    return a->authorized >= 0 && a->capture_reserved >= 0 && a->captured >= 0 &&
           a->refund_reserved >= 0 && a->refunded >= 0 && a->withdrawn >= 0 &&
           pay_money_add(a->captured, a->capture_reserved, &taken) && taken <= a->authorized &&
           pay_money_add(a->refunded, a->refund_reserved, &given_back) && given_back <= a->captured;
}

int64_t pay_amounts_capturable(const struct pay_amounts *a)
{
    return a->authorized - a->captured - a->capture_reserved;
}

int64_t pay_amounts_refundable(const struct pay_amounts *a)
{
    const int64_t held = a->captured - a->refunded - a->refund_reserved;
    return held > a->withdrawn ? held - a->withdrawn : 0;
}

/* The change is tried on a copy: all of it, or none. */
static bool keep(struct pay_amounts *a, const struct pay_amounts *changed, bool is_exact)
{
    if (!is_exact || !pay_amounts_hold(changed)) {
        return false;
    }
    *a = *changed;
    return true;
}

bool pay_amounts_reserve_capture(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 &&
           keep(a, &b, pay_money_add(b.capture_reserved, amount, &b.capture_reserved));
}

/* Raises what is authorized to what is used, if that is no more than most. */
static bool cover(struct pay_amounts *a, int64_t most)
{
    int64_t used = 0;
    if (!pay_money_add(a->captured, a->capture_reserved, &used) || used > most) {
        return false;
    }
    a->authorized = a->authorized > used ? a->authorized : used;
    return true;
}

bool pay_amounts_hold_capture(struct pay_amounts *a, int64_t amount, int64_t most)
{
    struct pay_amounts b = *a;
    return amount > 0 &&
           keep(a, &b,
                pay_money_add(b.capture_reserved, amount, &b.capture_reserved) && cover(&b, most));
}

bool pay_amounts_settle_capture(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b,
                              pay_money_sub(b.capture_reserved, amount, &b.capture_reserved) &&
                                  pay_money_add(b.captured, amount, &b.captured));
}

bool pay_amounts_release_capture(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 &&
           keep(a, &b, pay_money_sub(b.capture_reserved, amount, &b.capture_reserved));
}

bool pay_amounts_take_capture(struct pay_amounts *a, int64_t amount, int64_t most)
{
    struct pay_amounts b = *a;
    return amount > 0 &&
           keep(a, &b, pay_money_add(b.captured, amount, &b.captured) && cover(&b, most));
}

bool pay_amounts_release_rest(struct pay_amounts *a)
{
    const int64_t used = a->captured + a->capture_reserved; /* Never more than authorized. */
    const bool changes = a->authorized != used;
    a->authorized = used;
    return changes;
}

bool pay_amounts_reserve_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    if (amount <= 0 || PAY_GUARD(REFUNDABLE, amount > pay_amounts_refundable(a))) {
        return false;
    }
    return keep(a, &b, pay_money_add(b.refund_reserved, amount, &b.refund_reserved));
}

bool pay_amounts_hold_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_add(b.refund_reserved, amount, &b.refund_reserved));
}

bool pay_amounts_settle_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b,
                              pay_money_sub(b.refund_reserved, amount, &b.refund_reserved) &&
                                  pay_money_add(b.refunded, amount, &b.refunded));
}

bool pay_amounts_release_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_sub(b.refund_reserved, amount, &b.refund_reserved));
}

bool pay_amounts_take_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_add(b.refunded, amount, &b.refunded));
}

bool pay_amounts_return_refund(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_sub(b.refunded, amount, &b.refunded));
}

bool pay_amounts_withdraw(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_add(b.withdrawn, amount, &b.withdrawn));
}

bool pay_amounts_reinstate(struct pay_amounts *a, int64_t amount)
{
    struct pay_amounts b = *a;
    return amount > 0 && keep(a, &b, pay_money_sub(b.withdrawn, amount, &b.withdrawn));
}
