/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file step.h
 * @brief Everything that can happen next: commands, senders, the PSP, what is delivered, deadlines;
 * and what must be true after it (check.c).
 */
#ifndef PAY_TESTS_MONEY_STEP_H
#define PAY_TESTS_MONEY_STEP_H

#include "tests/property/money/bench.h"

#define MX_STEPS_MAX 256

enum mx_step_kind {
    MX_REFUND,  /**< arg: amount. */
    MX_CAPTURE, /**< arg: amount; + 16: the last. */
    MX_CANCEL,
    MX_PASS,    /**< arg: the job. */
    MX_FREE,    /**< It certainly did not leave. */
    MX_EXECUTE, /**< arg: enum mx_object; + 16: "not now". */
    MX_OLD,     /**< Every send of it has ended. */
    MX_MOVE,    /**< At the PSP: arg: 16 * object + what it becomes. */
    MX_MAKE,    /**< In the PSP's console. */
    MX_VOID,    /**< The PSP executes our cancel. */
    MX_DISPUTE, /**< At the PSP; arg: 1 opened, 2 taken, 3 given back, 4 won, 5 lost. */
    MX_ASK,     /**< arg 1: the attempt, for its sum. */
    /* To the core. */
    MX_SAY,    /**< Our own word; arg: enum pay_money_event. */
    MX_ANSWER, /**< arg: enum mx_object; 0: "not now". */
    MX_HOOK,   /**< arg: 16 * object + enum mx_object. */
    MX_SUM_HOOK,
    MX_TOLD, /**< The query's answer. */
    MX_VOID_ANSWER,
    MX_DISPUTE_HOOK, /**< arg as MX_DISPUTE. */
    MX_DUE,          /**< arg: the bit; + 16: at the action's end. */
    MX_CANCEL_DUE,
    MX_REQUEST, /**< arg: outcome; kind: enum pay_command_type. */
    MX_WORD,    /**< arg: 0 ann 1 bob 2 cat; + 4: other bytes; + 8: declines. */
    MX_REQUEST_DUE,
    MX_STEP_KIND_COUNT
};

/** attempt, or index of the action; money: enum pay_money_kind. */
struct mx_step {
    uint8_t kind, money, index, arg;
};

struct mx_violation {
    bool is_set;
    const char *invariant;
    char text[160];
};

enum mx_invariant {
    MX_AMOUNTS,      /**< The CHECKs; a reservation exactly while an action is open. */
    MX_SUMS,         /**< captured and refunded are the sums of what succeeded. */
    MX_REQUESTABLE,  /**< A request is accepted only within what is refundable or authorized. */
    MX_ENDS_DEAD,    /**< FAILED and CANCELED are said only of what can never succeed. */
    MX_IS_TRUE,      /**< SUCCEEDED and REVERSED are said only of what the PSP did. */
    MX_ONCE,         /**< One row for one object of the PSP. */
    MX_SENT_ONCE,    /**< Nothing is sent of what is over, nor beside another send of it. */
    MX_OWN_SENDS,    /**< Our own refunds never ask for more than was captured. */
    MX_WAITS,        /**< What is open has a deadline, or waits for two people. */
    MX_TWO_PEOPLE,   /**< Controlled changes, and refunds that need it, only after two words. */
    MX_FACTS,        /**< Facts match the rows. */
    MX_REPEATS,      /**< Deciding again gives the same bytes. */
    MX_REJECT_STILL, /**< REJECT moves nothing. */
    MX_NO_CASE,      /**< Where every PSP is honest and nobody uses its console: no money case. */
    MX_RESTS,        /**< At rest nothing is reserved and the amounts are what the PSPs hold. */
    MX_INVARIANT_COUNT
};

extern uint64_t mx_checks[MX_INVARIANT_COUNT];
const char *mx_invariant_name(enum mx_invariant invariant);
bool mx_check(struct mx_violation *violation, enum mx_invariant invariant, bool holds,
              const char *text);
bool mx_check_send(const struct mx_config *config, const struct mx_world *world,
                   struct mx_step step, struct mx_violation *violation);
/** After a decision. controlled: it was made by the second of two people. */
bool mx_check_decision(const struct mx_config *config, const struct mx_world *before,
                       const struct mx_world *after, const struct mx_decided *decided,
                       struct mx_step step, struct mx_violation *violation);
/** Nothing is left to happen. */
bool mx_check_rest(const struct mx_config *config, const struct mx_world *world,
                   struct mx_violation *violation);

void mx_world_begin(const struct mx_config *config, struct mx_world *world);
size_t mx_step_list(const struct mx_config *config, const struct mx_world *world,
                    struct mx_step steps[MX_STEPS_MAX]);
/** @return false when an invariant broke. ret_is_beyond: not to be followed. */
bool mx_step_apply(const struct mx_config *config, struct mx_world *world, struct mx_step step,
                   bool *ret_is_beyond, struct mx_violation *violation);
/** What happened, in words. */
void mx_step_print(struct mx_step step);
/** A request may still bring a success that the PSP has not made. */
bool mx_may_come(const struct mx_action *action, const struct mx_object_state *object);
/** What the PSP has under our number of the action; of the console's: that. */
int mx_own_object(const struct mx_action *action, int index);
/** What the PSP holds of that kind under the attempt: done, or pending too. */
int mx_held(const struct mx_world *world, enum pay_money_kind kind, int attempt, bool with_pending);

#endif /* PAY_TESTS_MONEY_STEP_H */
