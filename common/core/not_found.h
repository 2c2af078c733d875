/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file not_found.h
 * @brief How many "no such transaction" in a row make a failure: footnote 2, of attempts, captures
 * and refunds alike.
 *
 * Internal to common/core.
 */
#ifndef PAY_CORE_NOT_FOUND_H
#define PAY_CORE_NOT_FOUND_H

#include "common/core/snapshot.h"

/** The row that an attempt or a money action has had so far. */
struct pay_not_found_row {
    int count;
    int64_t first_asked_us; /**< 0: none. */
};

struct pay_not_found_ruling {
    bool counts;    /**< One more in the row. */
    bool restarts;  /**< The row begins with this one: a send came in between. */
    bool is_enough; /**< As many as the PSP needs. */
};

/** @return from when on a not-found can mean something: what was sent last has been executed and
 *          can be seen. */
int64_t pay_not_found_from(const struct pay_psp_traits *traits, int64_t last_send_us);
/** @param from_us pay_not_found_from(). @param is_late_enough it was asked after that. */
struct pay_not_found_ruling pay_not_found_rule(const struct pay_psp_traits *traits,
                                               struct pay_not_found_row row, int64_t from_us,
                                               bool is_late_enough);
/** @return the row with one more. Only where it counts. */
struct pay_not_found_row pay_not_found_next(struct pay_not_found_row row, bool restarts,
                                            int64_t asked_at_us);

#endif /* PAY_CORE_NOT_FOUND_H */
