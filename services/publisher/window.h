/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file window.h
 * @brief The rows of one shard that the publisher has in hand, in id order, and which may go next.
 *
 * One row of a key is on its way at a time: a row that the broker refuses must not be overtaken by
 * the payment's later ones. Rows of other keys go on.
 *
 * Ownership: the window owns copies of its rows. Threads: one. Failure: PAY_RETRY when memory is
 * out.
 */
#ifndef PAY_PUBLISHER_WINDOW_H
#define PAY_PUBLISHER_WINDOW_H

#include "common/base/err.h"
#include "common/base/str.h"

#define PAY_WINDOW_ROWS_MAX 4096 /**< Rows in hand per shard; more stay in the table. */
#define PAY_ROW_HEADERS_MAX 16

enum pay_row_state {
    PAY_ROW_WAITING,   /**< To be produced. */
    PAY_ROW_IN_FLIGHT, /**< Produced, no report yet. */
    PAY_ROW_DELIVERED, /**< Acknowledged; to be deleted. */
    PAY_ROW_REFUSED    /**< Refused; to be written back. */
};

struct pay_row_block;

struct pay_outbox_row {
    int64_t id;
    uint64_t tid; /**< Where it stood in the table. */
    size_t bytes; /**< Of memory: itself and what belongs to it. */
    int shard;
    enum pay_row_state state;
    uint64_t key_hash;
    bool is_job; /**< Topic psp-jobs; else events. */
    int attempts;
    int64_t created_at_us;
    const char *reason; /**< Static; why it was refused. */
    struct pay_str key;
    struct pay_bytes payload;
    const struct pay_str *headers; /**< Name, value, name, value ... */
    size_t header_count;           /**< Pairs. */
    bool orphaned;                 /**< Its window is gone; freed by its report. */
    struct pay_row_block *block;   /**< Of the window: where it and its text stand. */
};

struct pay_window {
    struct pay_outbox_row *rows[PAY_WINDOW_ROWS_MAX];
    size_t count;
    size_t in_flight;
    size_t waiting; /**< To be produced; whoever changes a row's state counts. */
    size_t bytes;   /**< Of all rows in hand. */
    int64_t cursor; /**< Largest id read; later reads start behind it. */
};

#define PAY_WINDOW_ADD_MAX 64 /**< Rows of one add: they share one block of memory. */

/** @brief Copy rows in; ids may come out of order (a sweep): each is put at its place. */
PAY_MUST_CHECK enum pay_status pay_window_add(struct pay_window *window,
                                              const struct pay_outbox_row *rows, size_t count,
                                              struct pay_err *err);
/**
 * @brief Rows that may be produced now: waiting, and first of their key in the window.
 * @param ret_rows room for @p cap.
 * @return how many.
 */
size_t pay_window_ready(struct pay_window *window, struct pay_outbox_row **ret_rows, size_t cap);
/** @brief Drop every row in @p state. Rows IN_FLIGHT cannot be dropped so. @return how many. */
size_t pay_window_drop(struct pay_window *window, enum pay_row_state state);
/** @brief Empty it; rows in flight become orphans that their report frees. */
void pay_window_clear(struct pay_window *window);
void pay_outbox_row_free(struct pay_outbox_row *row);

#endif /* PAY_PUBLISHER_WINDOW_H */
