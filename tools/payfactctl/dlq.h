/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dlq.h
 * @brief What the commands about dead letters share: one of the database by its id, and the letters
 * of the topic, of which only those of inputs are in the database too.
 */
#ifndef PAY_CTL_DLQ_H
#define PAY_CTL_DLQ_H

#include "common/contracts/dead_letter.h"
#include "common/store/dead.h"
#include "tools/payfactctl/ctl.h"

#define PAY_DLQ_ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)

/**
 * @brief Read one thing by its id.
 * @param ret_thing NULL: nothing has that name. In the arena.
 */
PAY_MUST_CHECK enum pay_status pay_dlq_find(const struct pay_ctl *ctl, const char *id,
                                            struct pay_arena *arena,
                                            const struct pay_dead_thing **ret_thing,
                                            struct pay_err *err);

/**
 * @brief Give each letter of the topic dlq to @p on_letter, oldest first within a partition.
 * @param since_s only those of the last seconds; 0: all that is kept.
 * @param on_letter @return false: enough. The letter is taken back after the call.
 */
struct pay_dlq_reading {
    int64_t since_s;
    bool (*on_letter)(void *ctx, const struct pay_dead_letter *letter);
    void *ctx;
    size_t unreadable; /**< Answer: records that are no letter of a known schema. */
};
PAY_MUST_CHECK enum pay_status pay_dlq_read(struct pay_ctl *ctl, struct pay_dlq_reading *reading,
                                            struct pay_err *err);

#endif /* PAY_CTL_DLQ_H */
