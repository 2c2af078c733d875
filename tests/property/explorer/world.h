/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file world.h
 * @brief The explorer's small world: one payment as the core has decided it, and what its PSPs
 * really hold.
 *
 * Every member is one byte and there is no padding, so a world is its own key: two worlds are the
 * same state exactly when their bytes are equal. Nothing is owned.
 *
 * Times are relative: now is always XP_NOW, and when time passes every stored time moves one tick
 * back, so that a world does not differ from itself a day later and the state space closes without
 * a horizon. A time is a byte: 0 is "not set", else 1 + half ticks (a tick is a second; the half
 * stands for "just after"), 1 is "long ago", 255 is "never". What the core counts without end
 * (versions, sequences, queries) is not part of a state; each step checks its own difference
 * instead.
 *
 * xp_world_settle() forgets what can make no difference any more: the certainty of a state whose
 * certainty nobody reads, moments that are over, what is on its way to an attempt that ended
 * without money (that such a message changes nothing is probed in every world, hostile.c).
 */
#ifndef PAY_TESTS_EXPLORER_WORLD_H
#define PAY_TESTS_EXPLORER_WORLD_H

#include "common/core/decide.h"

#define XP_ATTEMPTS_MAX 3 /**< A step that would make one more is beyond the bound. */
#define XP_CONFIRMS_MAX 2
#define XP_SLOTS_MAX 2 /**< Query answers in flight. */
#define XP_ROUTES 2
#define XP_DUE_KINDS 6 /**< SEND to AUTHORIZATION. */
#define XP_TICK_US INT64_C(1000000)
#define XP_START_US INT64_C(1700000000000000)
#define XP_NEVER 255
#define XP_NOW 30           /**< Ticks. */
#define XP_ANSWER_AGE_MAX 8 /**< Ticks; a query's answer that is older is lost. */
#define XP_AMOUNT INT64_C(2)

/** What a PSP holds under a request number. */
enum xp_object {
    XP_NONE,       /**< It has never heard of it. */
    XP_REFUSED,    /**< It answered a definite no and made nothing. */
    XP_PROCESSING, /**< It works; the customer is done. */
    XP_ACTION,     /**< The customer has not paid yet. */
    XP_DECLINED,   /**< A try was declined; the object can still be paid. */
    XP_APPROVED,   /**< Approved; only our CONFIRM moves money. */
    XP_CHARGED,
    XP_CANCELED,
    XP_FAILED,
    XP_OBJECT_COUNT
};

enum xp_gate_flag {
    XP_GATE_EXISTS = 1,
    XP_GATE_SENDING = 2,
    XP_GATE_CLOSED = 4,
    XP_GATE_REPLAYED = 8
};

struct xp_gate {
    uint8_t flags;
    uint8_t sends; /**< Whether there was one, not counting replays. */
    uint8_t not_after;
    uint8_t last_send;
};

enum xp_answer_flag { XP_ANSWER_FIRST = 1, XP_ANSWER_REPLAY = 2, XP_ANSWER_REFUSED = 4 };
enum xp_reference {
    XP_REFERENCE_MAIN,
    XP_REFERENCE_SECOND,
    XP_REFERENCE_REVERSAL,
    XP_REFERENCE_COUNT
};

struct xp_attempt {
    /* As decided. */
    uint8_t route, status, live, certainty, last_event;
    uint8_t not_founds, not_found_from, known_at, unknown;
    uint8_t actions, confirms, cancels; /**< cancels: whether there was one. */
    uint8_t action_until, psp_until, cancel_cause, failure_class;
    uint8_t authorized, captured, withdrawn;
    uint8_t references, bound_at;
    uint8_t due[XP_DUE_KINDS]; /**< Deadline rows. */
    struct xp_gate submit;
    struct xp_gate confirm[XP_CONFIRMS_MAX];
    /* What is true, and what is on its way. */
    uint8_t object, object_at, is_short; /**< is_short: charged another amount than asked for. */
    uint8_t second;                      /**< Another object under the same number. */
    uint8_t wire_until;                  /**< A request may be executed up to then. */
    uint8_t first_answer;                /**< What the PSP stores as its answer to the create. */
    uint8_t answers;                     /**< Of the create: in flight for ever. */
    uint8_t hooks;                       /**< Bit (1 << (object - 2)): that callback exists. */
    uint8_t second_hook;
    uint8_t reversed; /**< The PSP has taken the charge back; its callback exists. */
    uint8_t confirm_wire, confirm_until, confirm_answer; /**< wire, answer: of which CONFIRM. */
    uint8_t confirm_answered;
    uint8_t cancel_jobs, cancel_answer; /**< answer: 0 none, 1 canceled, 2 refused. */
    uint8_t approvals;                  /**< Given by the customer. */
};

struct xp_slot {
    uint8_t attempt; /**< 1 + index; 0: free. */
    uint8_t asked_at;
    uint8_t object; /**< What the PSP saw. */
    uint8_t query_by;
};

struct xp_world {
    /* As decided. */
    uint8_t exists, order, intent, intent_route, failover_until, expires_at, expiry_asked;
    uint8_t order_due, cases_low, cases_high, attempt_count;
    /* What the checks know by themselves. */
    uint8_t commands;    /**< Bits of the commands given. */
    uint8_t is_canceled; /**< The merchant's CANCEL was accepted. */
    uint8_t window;      /**< When the merchant's last word stops allowing attempts. */
    uint8_t told;        /**< Of money at a PSP: 1 by an answer, 2 by a callback or a query. */
    struct xp_slot slots[XP_SLOTS_MAX];
    struct xp_attempt attempts[XP_ATTEMPTS_MAX];
};

/** A PSP as its documentation describes it. Bits are (1 << enum xp_object). */
struct xp_kind {
    const char *name;
    bool can_cancel, confirm_moves_money, by_number, by_search, replays, expires;
    bool names_late;   /**< No reference before it is paid. */
    bool hides_unpaid; /**< Not found while unpaid, though it can be paid by who got the code. */
    uint16_t creates;  /**< What a create may become. */
    uint16_t moves[XP_OBJECT_COUNT]; /**< What it may become by itself or by the customer. */
};

/** In ticks. */
struct xp_times {
    uint8_t send_window, call_budget, longest, grace, answer, query_first, person_after;
    uint8_t action_lifetime, cancel_retry, failover, expires;
};

enum xp_trait {
    XP_LATE_EXECUTION = 1,    /**< A PSP executes a request after its longest processing. */
    XP_SECOND_OBJECT = 2,     /**< A PSP makes a second object of a repeated request. */
    XP_SHORT_CHARGE = 4,      /**< A PSP may charge another amount. */
    XP_MISREADS = 8,          /**< A PSP says "no such transaction" of one it has. */
    XP_ABSENT_IS_CLOSED = 16, /**< A PSP says "closed" of what it does not have yet. */
    XP_REVERSALS = 32,        /**< A PSP may take a charge back. */
    XP_FORGETS_REFUSAL = 64,  /**< A refused create is not stored: its replay may be executed. */
    XP_DISHONEST = XP_LATE_EXECUTION | XP_SECOND_OBJECT | XP_SHORT_CHARGE | XP_MISREADS,
};

enum xp_command {
    XP_CANCEL = 1,
    XP_CHANGE = 2,
    XP_START_NEXT = 4,
    XP_START_FIRST = 8,
    XP_CONTINUE = 16,
    XP_CHANGE_SAME = 32,
    XP_COMMANDS_ALL = 63
};

struct xp_config {
    const char *name;
    const struct xp_kind *kinds[XP_ROUTES];
    struct xp_times times;
    uint8_t attempts_max, slots;
    uint8_t commands; /**< Each at most once. */
    uint8_t traits;
    uint8_t failover_on_not_found; /**< Bit of the route. */
    uint8_t paused;                /**< Bit of the route. */
    uint8_t not_founds_needed;
    bool waits_for_method; /**< retry_until_expiry */
    bool only_full;
    bool keeps_cases; /**< Of every kind, not only of money. */
};

extern const struct xp_kind xp_kind_qr, xp_kind_card, xp_kind_no_cancel, xp_kind_confirm,
    xp_kind_direct, xp_kind_instant, xp_kind_scan;
extern const struct xp_config xp_configs[];
extern const size_t xp_config_count;

/** @return the moment so many ticks from now. */
static inline uint8_t xp_time_in(int ticks)
{
    return (uint8_t)(1 + 2 * (XP_NOW + ticks));
}
/** @return so many ticks after a moment. */
static inline uint8_t xp_time_after(uint8_t time, int ticks)
{
    return time == XP_NEVER ? XP_NEVER : (uint8_t)(time + 2 * ticks);
}
/** @return whether now has reached the time. 0 and XP_NEVER are never reached. */
static inline bool xp_time_reached(uint8_t time)
{
    return time != 0 && time != XP_NEVER && xp_time_in(0) >= time;
}
/** A tick passes: requests that were not executed in time, and answers that are too old, are lost.
 */
void xp_world_tick(struct xp_world *world);
/** Forgets what can make no difference. */
void xp_world_settle(const struct xp_config *config, struct xp_world *world);

bool xp_gate_passable(const struct xp_gate *gate);
/** @return whether the request number may still bring a charge that it has not brought. */
bool xp_may_succeed(const struct xp_world *world, const struct xp_config *config, int attempt);
/** As xp_may_succeed, and whether a gate would still let a request out. */
bool xp_may_be_sent(const struct xp_world *world, const struct xp_config *config, int attempt);
bool xp_is_final(uint8_t attempt_status);
uint32_t xp_cases(const struct xp_world *world);
size_t xp_world_size(const struct xp_config *config);

#endif /* PAY_TESTS_EXPLORER_WORLD_H */
