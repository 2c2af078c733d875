/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file inbox.h
 * @brief Transport idempotency and permanent evidence: step 1 of the processor's transaction.
 *
 * Ownership: rows and their texts are borrowed until the run. Threads: store.h.
 */
#ifndef PAY_STORE_INBOX_H
#define PAY_STORE_INBOX_H

#include "common/core/types.h"
#include "common/store/store.h"

#define PAY_STORE_INBOX_KEY_BYTES \
    16 /**< First bytes of SHA-256 over "psp/psp_account/transport". */

enum pay_store_event_status {
    PAY_STORE_EVENT_DECIDED,
    PAY_STORE_EVENT_ORPHAN,
    PAY_STORE_EVENT_DEAD,
    PAY_STORE_EVENT_STATUS_COUNT
};

/** One event as it is stored, and what the inbox answered. */
struct pay_store_inbox_row {
    struct pay_bytes key; /**< 16 bytes; rows are sorted by it, none twice. */
    struct pay_str psp, psp_account, transport_key;
    struct pay_str input_id;
    const char *kind; /**< PSP_EVENT, DEADLINE, REFUSED_NOTIFICATION, POISON. */
    enum pay_source source;
    struct pay_str payment_id; /**< Absent: not resolved (yet). */
    struct pay_str business_key;
    struct pay_bytes body; /**< Sealed. */
    struct pay_str key_id;
    struct pay_bytes sha256;
    struct pay_bytes normalized;
    struct pay_str verification;
    const char *status; /**< Of a new row: DECIDED, or DEAD for what is never decided. */
    int64_t occurred_at_us, received_at_us;
    struct pay_str trace_id;
    int copies; /**< Deliveries in this batch, from 1. */

    /* Answers. */
    bool is_known; /**< New, or seen by pay_store_inbox_seen(). */
    bool is_new;
    enum pay_store_event_status stored; /**< Of a seen one. */
    bool is_same_input;                 /**< Of a seen one: stored with this input_id. */
    int64_t id;
    int32_t month_days;
    int64_t first_seen_at_us;
};

/**
 * @brief Queue the insert of a batch's keys; one statement. pay_store_inbox_read() after the run.
 * The event of a new key is written with the batch's decisions: pay_store_event_add().
 */
PAY_MUST_CHECK enum pay_status pay_store_inbox_add(struct pay_store *store,
                                                   struct pay_store_inbox_row *const *rows,
                                                   size_t count, size_t *ret_index,
                                                   struct pay_err *err);
/** @return rows that are not new: pay_store_inbox_seen(). */
size_t pay_store_inbox_read(struct pay_store *store, size_t index,
                            struct pay_store_inbox_row *const *rows, size_t count);
/**
 * @brief Ask for rows that another transaction inserted; runs at once. Each counts its deliveries
 * up and stays locked until the end of the transaction. One that is still not known: its
 * transaction was rolled back meanwhile.
 */
PAY_MUST_CHECK enum pay_status pay_store_inbox_seen(struct pay_store *store,
                                                    struct pay_store_inbox_row *const *rows,
                                                    size_t count, struct pay_err *err);
/** @brief Queue the events of new keys; only rows with is_new. */
PAY_MUST_CHECK enum pay_status pay_store_event_add(struct pay_store *store,
                                                   const struct pay_store_inbox_row *const *rows,
                                                   size_t count, struct pay_err *err);

/** A stored event, to be decided again. */
struct pay_store_stored_event {
    struct pay_bytes key; /**< Asked. */
    bool found;
    int64_t id;
    int32_t month_days;
    const char *kind; /**< Static; "" when unknown. */
    enum pay_source source;
    enum pay_store_event_status status;
    struct pay_str payment_id; /**< In the arena given, as all texts. */
    struct pay_bytes normalized;
    struct pay_str verification;
    int64_t first_seen_at_us;
    struct pay_bytes body; /**< Sealed; of POISON only. */
    struct pay_str key_id; /**< Of the body; absent: the row has none. */
};
/** @brief Queue; locks the rows found. pay_store_stored_found() after the run. */
PAY_MUST_CHECK enum pay_status pay_store_stored_find(struct pay_store *store,
                                                     struct pay_store_stored_event *const *asks,
                                                     size_t count, size_t *ret_index,
                                                     struct pay_err *err);
void pay_store_stored_found(struct pay_store *store, size_t index, struct pay_arena *arena,
                            struct pay_store_stored_event *const *asks, size_t count);

/** What became of an event whose row is not as inserted. */
struct pay_store_event_change {
    int64_t id;
    int32_t month_days;
    const char *status;
    struct pay_str payment_id; /**< Absent: keep. */
};
/** @brief Queue status and payment of stored events. */
PAY_MUST_CHECK enum pay_status
pay_store_event_update(struct pay_store *store, const struct pay_store_event_change *const *rows,
                       size_t count, struct pay_err *err);

#endif /* PAY_STORE_INBOX_H */
