/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file draw.h
 * @brief Inputs drawn at random, as plausible as often as not: what the walks of test_trace.c are
 * made of. One drawing at a time: the generator's state is the module's.
 */
#ifndef PAY_TESTS_CORE_DRAW_H
#define PAY_TESTS_CORE_DRAW_H

#include "tests/unit/core/trace.h"

void draw_begin(uint64_t seed);
/** @return 0 to count - 1. */
int draw_pick(int count);
bool draw_one_in(int count);
#define ONE_OF(list_) (list_)[draw_pick((int)(sizeof(list_) / sizeof((list_)[0])))]

/** @return the capture or refund with that number; NULL: none. */
struct pay_money_action *draw_find_action(struct world *w, const char *tail);

/* Each draws one input and decides it. */
void draw_attempt_event(struct world *w);
void draw_action_event(struct world *w);
void draw_dispute_event(struct world *w);
void draw_merchant_command(struct world *w);
void draw_money_command(struct world *w);
void draw_operator_command(struct world *w);
/** What an operator asks for, and at once what others say to it; all but the last is printed. */
void draw_two_people(struct world *w, FILE *out);
/** APPROVE or DECLINE, when something waits for it. */
void draw_word(struct world *w);

#endif /* PAY_TESTS_CORE_DRAW_H */
