/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file input.h
 * @brief What the processor would hand to the core: events at the evidence that their channel has,
 * commands, deadlines.
 *
 * A built input is static storage of this module and lives until the next one is built.
 */
#ifndef PAY_TESTS_EXPLORER_INPUT_H
#define PAY_TESTS_EXPLORER_INPUT_H

#include "tests/property/explorer/world.h"

/** How a PSP's word about an object reaches us. */
enum xp_channel {
    XP_BY_ANSWER,         /**< The answer to our create. */
    XP_BY_REPLAY,         /**< The answer to its replay. */
    XP_BY_CONFIRM_ANSWER, /**< number: of which CONFIRM. */
    XP_BY_CANCEL_ANSWER,
    XP_BY_QUERY, /**< query_by, asked_at. */
    XP_BY_CALLBACK,
    XP_BY_US /**< SUB, NSN, UNK; number: of which CONFIRM, 0: of the SUBMIT. */
};

struct xp_saying {
    enum xp_channel channel;
    enum pay_event_type type;
    int attempt;
    int number;
    enum xp_reference reference;
    int send_no;
    enum pay_query_by query_by;
    uint8_t asked_at;
    bool is_short;    /**< The amount is another one. */
    bool hands_out;   /**< With an action for the customer. */
    bool is_nameless; /**< Without a reference. */
};

/** @return the event that says it; PAY_EV_COUNT when there is nothing to say of it. */
enum pay_event_type xp_event_of(uint8_t object);
const struct pay_decide_input *xp_input_say(const struct xp_world *world,
                                            const struct xp_saying *saying);
/** May be changed before it is decided: hostile variants are made from a true one. */
struct pay_decide_input *xp_input_last(void);
struct pay_event *xp_input_last_event(void);

/** @param command a bit of enum xp_command; 0: CREATE_PAYMENT. attempt: of CONTINUE. */
const struct pay_decide_input *xp_input_command(const struct xp_config *config, uint8_t command,
                                                int attempt);
/** @param attempt -1: the order's. row_due: what the row says now. */
const struct pay_decide_input *xp_input_deadline(enum pay_deadline_kind kind, int attempt,
                                                 uint8_t due, uint8_t row_due);

#endif /* PAY_TESTS_EXPLORER_INPUT_H */
