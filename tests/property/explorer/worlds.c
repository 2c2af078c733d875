/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/world.h"

#define BIT(object) (1U << (object))

/* Asked by our number, closed by our number, paid on a page (WeChat Pay). */
const struct xp_kind xp_kind_qr = {
    .name = "qr",
    .can_cancel = true,
    .by_number = true,
    .expires = true,
    .names_late = true,
    .creates = BIT(XP_ACTION) | BIT(XP_REFUSED),
    .moves = {[XP_ACTION] = BIT(XP_CHARGED)},
};

/* Answers at once or later, declines without giving up the object, learned of by replay (Stripe).
 */
const struct xp_kind xp_kind_card = {
    .name = "card",
    .can_cancel = true,
    .by_search = true,
    .replays = true,
    .creates =
        BIT(XP_CHARGED) | BIT(XP_PROCESSING) | BIT(XP_ACTION) | BIT(XP_DECLINED) | BIT(XP_REFUSED),
    .moves = {[XP_PROCESSING] = BIT(XP_CHARGED) | BIT(XP_DECLINED),
              [XP_ACTION] = BIT(XP_CHARGED) | BIT(XP_PROCESSING) | BIT(XP_DECLINED),
              [XP_DECLINED] = BIT(XP_CHARGED)},
};

/* A code that can be paid, of which the PSP knows nothing before it is scanned (Alipay). */
const struct xp_kind xp_kind_scan = {
    .name = "scan",
    .by_number = true,
    .expires = true,
    .names_late = true,
    .hides_unpaid = true,
    .creates = BIT(XP_ACTION) | BIT(XP_REFUSED),
    .moves = {[XP_ACTION] = BIT(XP_CHARGED)},
};

const struct xp_kind xp_kind_no_cancel = {
    .name = "no-cancel",
    .by_number = true,
    .expires = true,
    .creates = BIT(XP_PROCESSING) | BIT(XP_ACTION) | BIT(XP_REFUSED),
    .moves = {[XP_PROCESSING] = BIT(XP_CHARGED) | BIT(XP_FAILED), [XP_ACTION] = BIT(XP_CHARGED)},
};

/* The customer approves, our CONFIRM moves the money, nothing cancels (PayPal orders). */
const struct xp_kind xp_kind_confirm = {
    .name = "confirm",
    .confirm_moves_money = true,
    .replays = true,
    .expires = true,
    .creates = BIT(XP_ACTION) | BIT(XP_REFUSED),
    .moves = {[XP_ACTION] = BIT(XP_APPROVED), [XP_DECLINED] = BIT(XP_APPROVED)},
};

/* A direct charge without a page: a definite answer, or work (Adyen direct, bar codes). */
const struct xp_kind xp_kind_direct = {
    .name = "direct",
    .can_cancel = true,
    .by_number = true,
    .creates = BIT(XP_CHARGED) | BIT(XP_PROCESSING) | BIT(XP_REFUSED),
    .moves = {[XP_PROCESSING] = BIT(XP_CHARGED) | BIT(XP_FAILED)},
};

/* The least that can charge: a second attempt on it is what must not happen too early. */
const struct xp_kind xp_kind_instant = {
    .name = "instant",
    .can_cancel = true,
    .by_number = true,
    .creates = BIT(XP_CHARGED) | BIT(XP_REFUSED),
};

/* not_after, executed within, seen within, ... The order of the moments matters, not their size. */
#define SHORT              \
    {.send_window = 1,     \
     .call_budget = 0,     \
     .longest = 0,         \
     .grace = 0,           \
     .answer = 1,          \
     .query_first = 1,     \
     .person_after = 2,    \
     .action_lifetime = 2, \
     .cancel_retry = 1,    \
     .failover = 3,        \
     .expires = 4}

/* As real constants are: every span of its own, counts above one. */
#define LONG               \
    {.send_window = 1,     \
     .call_budget = 1,     \
     .longest = 1,         \
     .grace = 1,           \
     .answer = 1,          \
     .query_first = 1,     \
     .person_after = 3,    \
     .action_lifetime = 3, \
     .cancel_retry = 1,    \
     .failover = 6,        \
     .expires = 8}

/* A page lives longer than a not-found needs. */
#define PATIENT            \
    {.send_window = 1,     \
     .call_budget = 0,     \
     .longest = 0,         \
     .grace = 0,           \
     .answer = 1,          \
     .query_first = 1,     \
     .person_after = 2,    \
     .action_lifetime = 4, \
     .cancel_retry = 1,    \
     .failover = 4,        \
     .expires = 5}

#define WORLD(a, b) .kinds = {&xp_kind_##a, &xp_kind_##b}, .times = SHORT, .not_founds_needed = 1
#define LONG_WORLD(a, b) .kinds = {&xp_kind_##a, &xp_kind_##b}, .times = LONG, .only_full = true
#define BOTH 3 /* Routes. */

/* Small ones first: a guard that is off is mostly found in them. */
const struct xp_config xp_configs[] = {
    {.name = "direct-paused",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_START_NEXT | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .paused = 2,
     .waits_for_method = true},
    {.name = "direct-start",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_START_NEXT | XP_START_FIRST,
     .failover_on_not_found = BOTH},
    {.name = "reversed",
     WORLD(instant, instant),
     .attempts_max = 1,
     .slots = 0,
     .traits = XP_REVERSALS},
    {.name = "scan",
     .kinds = {&xp_kind_scan, &xp_kind_instant},
     .times = PATIENT,
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "absent-is-closed",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL,
     .traits = XP_ABSENT_IS_CLOSED,
     .failover_on_not_found = BOTH},
    {.name = "misread",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .traits = XP_MISREADS,
     .failover_on_not_found = BOTH},
    {.name = "card-forgets",
     WORLD(card, instant),
     .attempts_max = 2,
     .slots = 1,
     .traits = XP_FORGETS_REFUSAL,
     .waits_for_method = true},
    {.name = "no-cancel",
     WORLD(no_cancel, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL,
     .failover_on_not_found = BOTH,
     .waits_for_method = true},
    {.name = "direct-careful",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_START_NEXT | XP_CHANGE,
     .waits_for_method = true},
    {.name = "short",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .traits = XP_SHORT_CHARGE,
     .failover_on_not_found = BOTH,
     .waits_for_method = true},
    {.name = "late",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .traits = XP_LATE_EXECUTION,
     .failover_on_not_found = BOTH,
     .waits_for_method = true},
    {.name = "direct",
     WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .waits_for_method = true},
    {.name = "confirm-cancel",
     WORLD(confirm, instant),
     .attempts_max = 1,
     .slots = 0,
     .commands = XP_CANCEL,
     .failover_on_not_found = BOTH},
    {.name = "qr",
     WORLD(qr, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .waits_for_method = true},
    {.name = "card-cancel",
     WORLD(card, instant),
     .attempts_max = 1,
     .slots = 1,
     .commands = XP_CANCEL,
     .waits_for_method = true},
    {.name = "second",
     WORLD(card, instant),
     .attempts_max = 2,
     .slots = 1,
     .traits = XP_SECOND_OBJECT,
     .waits_for_method = true},
    {.name = "card",
     WORLD(card, instant),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .failover_on_not_found = BOTH},
    {.name = "confirm",
     WORLD(confirm, instant),
     .attempts_max = 2,
     .slots = 0,
     .commands = XP_CONTINUE,
     .failover_on_not_found = BOTH},

    {.name = "long-direct",
     LONG_WORLD(direct, instant),
     .attempts_max = 2,
     .slots = 2,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 2,
     .waits_for_method = true},
    {.name = "long-three",
     LONG_WORLD(direct, instant),
     .attempts_max = 3,
     .slots = 1,
     .commands = XP_START_NEXT | XP_CHANGE_SAME,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "long-qr",
     LONG_WORLD(qr, direct),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 2,
     .waits_for_method = true},
    {.name = "long-no-cancel",
     LONG_WORLD(no_cancel, direct),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1},
    {.name = "full-card",
     .kinds = {&xp_kind_card, &xp_kind_card},
     .times = SHORT,
     .only_full = true,
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "full-card-cancel",
     .kinds = {&xp_kind_card, &xp_kind_direct},
     .times = SHORT,
     .only_full = true,
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CANCEL | XP_CHANGE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "full-confirm",
     .kinds = {&xp_kind_confirm, &xp_kind_instant},
     .times = SHORT,
     .only_full = true,
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CONTINUE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1},
    {.name = "full-confirm-cancel",
     .kinds = {&xp_kind_confirm, &xp_kind_instant},
     .times = SHORT,
     .only_full = true,
     .attempts_max = 2,
     .slots = 0,
     .commands = XP_CONTINUE | XP_CANCEL,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "full-late",
     LONG_WORLD(direct, direct),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .traits = XP_LATE_EXECUTION,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "full-short",
     LONG_WORLD(direct, direct),
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .traits = XP_SHORT_CHARGE,
     .failover_on_not_found = BOTH,
     .not_founds_needed = 1,
     .waits_for_method = true},
    {.name = "full-second",
     .kinds = {&xp_kind_card, &xp_kind_instant},
     .times = SHORT,
     .only_full = true,
     .attempts_max = 2,
     .slots = 1,
     .commands = XP_CHANGE,
     .traits = XP_SECOND_OBJECT,
     .not_founds_needed = 1,
     .waits_for_method = true},
};
const size_t xp_config_count = sizeof xp_configs / sizeof xp_configs[0];
