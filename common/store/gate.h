/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file gate.h
 * @brief The gate of money actions (data-model): one row per money job, passed once.
 *
 * The processor inserts gates with their jobs and closes them in its CAS step (pay_store_gate_add,
 * _close: queued, run by the caller's flush). Everything else is for ingest/psp: each call is one
 * statement, committed by itself. Failure: as pg.h. PAY_UNKNOWN from a pass means that it may have
 * been passed: read the row; it is ours when sent_by is our name, so a name must never be used by
 * two processes.
 */
#ifndef PAY_STORE_GATE_H
#define PAY_STORE_GATE_H

#include "common/core/snapshot.h"
#include "common/store/store.h"

#define PAY_STORE_DIGEST_BYTES 32

/** A gate with the digest of its job's bytes, to be inserted. */
struct pay_store_gate_row {
    struct pay_gate gate;
    struct pay_bytes digest; /**< 32 bytes. */
};

/* ---- processor ---- */

/** @brief Queue the insert of @p count gates. */
PAY_MUST_CHECK enum pay_status pay_store_gate_add(struct pay_store *store,
                                                  const struct pay_store_gate_row *const *rows,
                                                  size_t count, struct pay_err *err);
/**
 * @brief Queue the close of gates as their snapshots saw them (sending or not, sends).
 * A gate that was passed, freed or closed since makes pay_store_flush() answer PAY_STORE_COUNT.
 */
PAY_MUST_CHECK enum pay_status pay_store_gate_close(struct pay_store *store,
                                                    const struct pay_gate *const *gates,
                                                    size_t count, struct pay_err *err);

/* ---- ingest/psp ---- */

/** What is stored of a gate. Bytes belong to the arena given. */
struct pay_store_gate_state {
    bool found;
    bool same_digest; /**< The job asked about is the one that was decided. */
    bool sending;     /**< Passed and not freed. */
    bool closed;
    bool late; /**< now() >= not_after. */
    bool finished;
    bool may_replay; /**< Not closed, sent once, now() < replay_until, a request is stored. */
    struct pay_str sent_by;
    int sends;
    int64_t not_after_us;
    int64_t last_send_at_us;
    int64_t replay_until_us; /**< 0: none. */
    struct pay_str endpoint;
    struct pay_bytes request; /**< Sealed. */
    struct pay_str request_key_id;
    struct pay_bytes outcome; /**< Sealed. */
    struct pay_str outcome_key_id;
    int64_t now_us; /**< The database's time. */
};

/** A pass of the gate. */
struct pay_store_gate_send {
    int send_no;    /**< From 1; 0: not passed, never send. */
    int64_t now_us; /**< The database's time of the pass. */
};

/** The request as it will be sent, without credentials, sealed, for IDEMPOTENT_REPLAY. */
struct pay_store_gate_request {
    struct pay_str me; /**< Name of who sends, unique. */
    struct pay_str endpoint;
    struct pay_bytes sealed; /**< ptr NULL: it cannot be kept, so there is no replay of it. */
    struct pay_str key_id;
    int64_t replay_lifetime_us; /**< From the pass on, by the database's clock. */
    int64_t expires_at_us;      /**< No replay after it; 0: none. */
};
/**
 * @brief Pass the gate and keep the request: before the first byte of a money call.
 */
PAY_MUST_CHECK enum pay_status pay_store_gate_pass(struct pay_store *store, struct pay_str job_id,
                                                   struct pay_bytes digest,
                                                   const struct pay_store_gate_request *request,
                                                   struct pay_store_gate_send *ret_send,
                                                   struct pay_err *err);
/** @param digest absent: whose bytes it was does not matter (same_digest is then false). */
PAY_MUST_CHECK enum pay_status pay_store_gate_read(struct pay_store *store, struct pay_str job_id,
                                                   struct pay_bytes digest, struct pay_arena *arena,
                                                   struct pay_store_gate_state *ret_state,
                                                   struct pay_err *err);
/** @brief Give back a first send that certainly did not leave. @param ret_freed false: not ours. */
PAY_MUST_CHECK enum pay_status pay_store_gate_release(struct pay_store *store,
                                                      struct pay_str job_id, struct pay_str me,
                                                      int send_no, bool *ret_freed,
                                                      struct pay_err *err);
/**
 * @brief Pass the gate for an idempotent replay.
 * @param call_budget_us Longest that one call lasts: no replay beside a send that has not ended.
 * @param ret_send number 0: not allowed, now or any more.
 */
PAY_MUST_CHECK enum pay_status pay_store_gate_replay(struct pay_store *store, struct pay_str job_id,
                                                     int64_t call_budget_us,
                                                     struct pay_store_gate_send *ret_send,
                                                     struct pay_err *err);

/**
 * @brief Before a definite no is believed: is our send the only one, and may no replay follow it?
 * @param ret_only_send true: so it is, from now on for ever; false: a replay was sent, or the gate
 * is not ours.
 */
PAY_MUST_CHECK enum pay_status pay_store_gate_end_replay(struct pay_store *store,
                                                         struct pay_str job_id, struct pay_str me,
                                                         int send_no, bool *ret_only_send,
                                                         struct pay_err *err);

/** @brief Keep the outcome of a send, once. @param ret_saved false: an outcome is there already. */
PAY_MUST_CHECK enum pay_status pay_store_gate_finish(struct pay_store *store, struct pay_str job_id,
                                                     struct pay_bytes sealed, struct pay_str key_id,
                                                     bool *ret_saved, struct pay_err *err);

#endif /* PAY_STORE_GATE_H */
