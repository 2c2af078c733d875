/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file work.h
 * @brief The processor's working state: one worker, its batch of items, the payments they touch.
 *
 * A batch is decoded once into items; each try of a transaction groups them into units, one per
 * payment, decides, and collects in the unit what is to be written. Ownership: items belong to the
 * worker's batch arena, units and what they hold to its try arena. Threads: one per worker.
 */
#ifndef PAY_PROCESSOR_WORK_H
#define PAY_PROCESSOR_WORK_H

#include "common/accounts/accounts.h"
#include "common/contracts/command_record.h"
#include "common/contracts/dead_letter.h"
#include "common/contracts/payment_event.h"
#include "common/contracts/payment_input.h"
#include "common/contracts/psp_job.h"
#include "common/core/decide.h"
#include "common/crypto/keyring.h"
#include "common/crypto/sha256.h"
#include "common/io/kafka/kafka_consumer.h"
#include "common/store/approval.h"
#include "common/store/attempt.h"
#include "common/store/cases.h"
#include "common/store/commands.h"
#include "common/store/deadlines.h"
#include "common/store/gate.h"
#include "common/store/history.h"
#include "common/store/inbox.h"
#include "common/store/money.h"
#include "common/store/order.h"
#include "common/store/outbox.h"
#include "common/store/reference.h"
#include "common/store/snapshot.h"
#include "services/processor/settings.h"

#define PAY_PROCESSOR_ARENA_MAX ((size_t)96 << 20) /**< Each of the two arenas, unless told. */
#define PAY_PROCESSOR_CAS_TRIES 3 /**< Readings of a payment within one transaction. */

/** A growing list of pointers in an arena. */
struct pay_list {
    void **items;
    size_t count, cap;
};
/** @return false when the arena is at its maximum. */
PAY_MUST_CHECK bool pay_list_add(struct pay_arena *arena, struct pay_list *list, void *item);
/** As qsort(3); copes with an empty one. */
void pay_list_sort(struct pay_list *list, int (*order)(const void *, const void *));

enum pay_item_kind {
    PAY_ITEM_EVENT,
    PAY_ITEM_COMMAND,
    PAY_ITEM_DEADLINE,
    PAY_ITEM_REPLAY,
    PAY_ITEM_REFUSED,
    PAY_ITEM_POISON, /**< Undecodable, or refused by the database: kept and dead-lettered. */
    PAY_ITEM_KIND_COUNT
};

struct pay_unit;

/** One input. Members below "per try" are made anew by each try of the transaction. */
struct pay_item {
    const struct pay_kafka_msg *msg;
    enum pay_item_kind kind;
    enum pay_dead_reason dead; /**< POISON. */
    char dead_text[160];       /**< POISON: for people, no payload. */
    bool dead_letter; /**< To be produced to the dlq: POISON, or an orphan that was given up. */
    struct pay_payment_input input;

    /* Command. */
    struct pay_command *command;
    struct pay_str refusal; /**< Found before deciding; absent: none. */
    bool is_not_allowed;    /**< And its caller has no part in what it names. */
    bool is_operator;
    uint8_t command_sha256[PAY_SHA256_BYTES];
    struct pay_route *routes; /**< Resolved, with traits. */
    size_t route_count;
    struct pay_policy policy;

    struct pay_str cause; /**< Business key, caller/command_id or the deadline's transport key. */
    uint8_t key[PAY_SHA256_BYTES]; /**< Its first 16 bytes are the inbox key. */
    bool has_key;                  /**< Goes through the inbox. */
    struct pay_bytes normalized;
    struct pay_str transport_key;
    char place[PAY_TRANSPORT_KEY_MAX + 1]; /**< POISON: topic:partition:offset. */
    /** POISON that was a deadline: its row, and transport_key is the deadline's own. Absent
     * aggregate_id: none, and transport_key is the place. */
    struct pay_store_deadline condemned;
    enum pay_deadline_kind deadline_kind;
    struct pay_str trace_id;  /**< Absent: none. */
    const char *twin_refusal; /**< Why there is no twin. */
    size_t log_no;            /**< Its place in the batch. */

    /* Per try. */
    struct pay_item *twin; /**< REPLAY_INPUT of poison: the event in it, a delivery of its own. */
    struct pay_store_inbox_row inbox;
    struct pay_store_stored_event stored;
    struct pay_store_command_ask repeat;
    struct pay_store_due_ask due;
    struct pay_store_order_no_ask order_no;
    struct pay_store_dead_event dead_event;
    struct pay_store_case_ask case_ask;
    struct pay_store_key_ask key_ask; /**< CAPTURE, REQUEST_REFUND. */
    char action_key[PAY_IDEMPOTENCY_KEY_SIZE];
    struct pay_item *same; /**< Folded into that item of this try. */
    bool done;             /**< Nothing is to be decided: a duplicate, or answered already. */
    const struct pay_payment_input *what; /**< The input to decide: its own or the stored one. */
    char payment_id[PAY_PAYMENT_ID_SIZE]; /**< "": none. */
    bool foreign_reference;
    enum pay_verdict verdict;
    const char *reason; /**< Static; NULL: not decided. */
    bool is_security;
};

/** A dead event and what is published in its place. */
struct pay_withheld {
    const struct pay_store_dead_event *dead;
    struct pay_store_outbox_row row;
};

/** A deadline effect; the last one of (aggregate, kind) in a unit wins. */
struct pay_deadline_change {
    bool clear;
    struct pay_store_deadline row;
};

/** A job that was decided; its bytes are made when everything it needs is loaded. */
struct pay_job_plan {
    struct pay_job_effect effect;
    struct pay_item *item;
    struct pay_store_outbox_row
        *row; /**< To be filled; NULL: the payment is not on the write path. */
    uint8_t digest[PAY_SHA256_BYTES];
    struct pay_store_params_ask params;
    struct pay_store_redirect_ask redirect;
};

/** Which decision opened or fed a case of the snapshot. */
struct pay_case_note {
    size_t case_index;
    const struct pay_item *item;
    const char *event_name;
    const char *reason_code;
};

/** Everything of one payment in one try. Without a payment: payment id "". */
struct pay_unit {
    struct pay_snapshot snapshot;
    struct pay_list work; /**< struct pay_item, in log order. */
    size_t loaded_routes;
    size_t named_routes; /**< Routes whose parameters are in route_rows. */
    bool loaded;         /**< The order was there when it was read. */
    bool won;
    bool decided;             /**< Has history of its own: its version is to be raised. */
    int64_t day_loaded_minor; /**< The merchant's refund_day as it was read. */
    struct pay_store_order_detail detail;
    struct pay_list history, outbox, jobs, deadlines, commands, audits, redirects, events, cases,
        route_rows, renewals, pauses, case_notes, withheld, revived, closed_cases, postponed;
};

struct pay_worker_options {
    const struct pay_processor_settings *cfg;
    struct pay_metric **metrics; /**< PAY_PM_COUNT entries, each may be NULL. */
    struct pay_keyring *keyring;
    uint32_t partitions;                   /**< Of the inputs topic: gives the outbox shard. */
    size_t batch_bytes_max, try_bytes_max; /**< Of the two arenas; 0: PAY_PROCESSOR_ARENA_MAX. */
    /** @brief Wait before a batch is tried again. @return false: give it up (drain). */
    bool (*wait)(void *ctx, int ms);
    /** @brief Produce a dead letter and have it acknowledged. @return false: not (yet). */
    bool (*dead_letter)(void *ctx, const struct pay_kafka_msg *msg, struct pay_bytes letter);
    void *ctx;
};

struct pay_worker {
    struct pay_worker_options options;
    struct pay_pg_backoff backoff;
    const struct pay_processor_settings *cfg;
    struct pay_metric **metrics; /**< PAY_PM_COUNT; entries may be NULL (tests). */
    struct pay_store *store;
    struct pay_codec *codec;
    struct pay_keyring *keyring;
    const struct pay_accounts *accounts; /**< Of this turn. */
    struct pay_arena *batch;             /**< Of the items: reset for each batch. */
    struct pay_arena *scratch;           /**< Of a try. */
    struct pay_arena *reading;           /**< The one that an item is being read into. */
    struct pay_buf bytes;
    uint32_t partitions;
    struct pay_decision *decision; /**< Too large for the stack. */
    int64_t now_us;                /**< The database's clock in the latest transaction. */
};

/** One try. Lists hold pointers into items and units. */
struct pay_try {
    struct pay_worker *worker;
    struct pay_item **items;
    size_t count;
    struct pay_list inbox;       /**< pay_store_inbox_row, sorted by key. */
    struct pay_list commands;    /**< pay_store_command_ask */
    struct pay_list stored;      /**< pay_store_stored_event */
    struct pay_list dead_events; /**< pay_store_dead_event */
    struct pay_list case_asks;   /**< pay_store_case_ask */
    struct pay_list references;  /**< pay_store_reference_ask */
    struct pay_list ref_items;   /**< pay_item, one per reference. */
    struct pay_list units;       /**< pay_unit, sorted by payment id; the first may be without. */
    struct pay_unit *loose;      /**< The unit without a payment. */
    int64_t now_us;
    size_t conflicts;
    bool is_begun;
};

/* ---- item.c: bytes to items ---- */

/**
 * @brief Decode and validate one record into the batch's arena. What cannot work is a POISON item.
 * @return PAY_RETRY: the arena or the heap has no room for it, which is not its fault.
 */
PAY_MUST_CHECK enum pay_status pay_item_read(struct pay_worker *worker,
                                             const struct pay_kafka_msg *msg, struct pay_item *item,
                                             struct pay_err *err);
/** @brief The same for a value that was kept, into the try's arena; msg is the command's that names
 * it. */
PAY_MUST_CHECK enum pay_status pay_item_read_kept(struct pay_worker *worker,
                                                  const struct pay_kafka_msg *msg,
                                                  struct pay_bytes value, struct pay_item *item,
                                                  struct pay_err *err);
/** @brief Make the item poison. @param text for people, no payload. */
void pay_item_poison(struct pay_item *item, enum pay_dead_reason reason, const char *text);
/**
 * @brief Make a decoded item poison that holds nothing of the message but its sealed bytes, so that
 * it can always be written; a deadline stays known by its own key, however often it is made again.
 */
void pay_item_condemn(struct pay_item *item, enum pay_dead_reason reason, const char *text);
/** @brief Poison by its place alone. @return false: it was that before. */
PAY_MUST_CHECK bool pay_item_forget_deadline(struct pay_item *item);
/** @brief SHA-256 of an inbox key's parts; false: they are not of the form that a key may have. */
PAY_MUST_CHECK bool pay_inbox_digest(struct pay_str psp, struct pay_str psp_account,
                                     struct pay_str transport_key,
                                     uint8_t ret_digest[PAY_SHA256_BYTES]);

/* ---- commands.c ---- */

/** @brief Verify, permit and resolve a decoded command. @return false: no room for it. */
PAY_MUST_CHECK bool pay_item_read_command(struct pay_worker *worker, struct pay_item *item);
/** @brief A command that is stored already: answer as before, or refuse other content. */
PAY_MUST_CHECK enum pay_status pay_command_repeat(struct pay_try *turn, struct pay_item *item,
                                                  struct pay_err *err);
/** @brief A command about no payment's state: routes and stored events. */
PAY_MUST_CHECK enum pay_status pay_command_loose(struct pay_try *turn, struct pay_item *item,
                                                 struct pay_err *err);
/** @brief The row of an answered command. */
void pay_command_row(const struct pay_item *item, const char *status, const char *reason,
                     struct pay_bytes answer_bytes, struct pay_store_command_row *ret_row);
/** @brief A row of audit_log. @param what, reason static or in the try's arena. */
PAY_MUST_CHECK bool pay_command_audit(struct pay_try *turn, struct pay_unit *unit,
                                      const struct pay_item *item, const char *what,
                                      const char *reason);
/** @return true for a command that pay_command_loose() answers. */
bool pay_command_is_loose(const struct pay_command *command);

/* ---- dead.c: what was given up, again or no more ---- */

/**
 * @brief Before anything else of a try: open the poison that a REPLAY_INPUT names. The event in it
 * joins the try as if it were delivered now.
 */
PAY_MUST_CHECK enum pay_status pay_dead_open(struct pay_try *turn, struct pay_err *err);
/* Each: @param ret_refusal why not, static; left alone or NULL: none. */
/** @brief Decide the stored event from now on. */
PAY_MUST_CHECK enum pay_status pay_dead_open_stored(struct pay_try *turn, struct pay_item *item,
                                                    const char **ret_refusal, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_dead_replay_input(struct pay_try *turn, struct pay_item *item,
                                                     const char **ret_refusal, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_dead_replay_event(struct pay_try *turn, struct pay_item *item,
                                                     const char **ret_refusal, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_dead_discard_event(struct pay_try *turn, struct pay_item *item,
                                                      const char **ret_refusal,
                                                      struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_dead_resolve_case(struct pay_try *turn, struct pay_item *item,
                                                     const char **ret_refusal, struct pay_err *err);
/** @brief The case of an event that was decided at last. @param case_id as the case has it. */
PAY_MUST_CHECK bool pay_dead_close_case(struct pay_try *turn, struct pay_unit *unit,
                                        const struct pay_item *item, struct pay_str case_id,
                                        const char *code);

/* ---- derive.c: what an input is worth ---- */

/** @return NULL when the input's kind, source and event fit each other; else why not (static). */
const char *pay_derive_refuse(const struct pay_payment_input *input);
/** @brief Evidence by kind and source, never by what the message says. */
enum pay_evidence pay_derive_evidence(const struct pay_payment_input *input);

/* ---- resolve.c: which payment ---- */

/** @brief Collect the names to look up. */
PAY_MUST_CHECK bool pay_resolve_ask(struct pay_try *turn, struct pay_item *item);
/** @brief Set payment_id and foreign_reference of all items from what was found. */
void pay_resolve(struct pay_try *turn);

/* ---- facts.c, jobs.c: decisions to bytes ---- */

/** @brief Encode a fact into a new outbox row of the unit. @param ret_payload its bytes. */
PAY_MUST_CHECK enum pay_status pay_fact_emit(struct pay_try *turn, struct pay_unit *unit,
                                             struct pay_item *item, const struct pay_fact *fact,
                                             struct pay_bytes *ret_payload, struct pay_err *err);
/** @brief Encode EventWithheld for a dead event, under its number. */
PAY_MUST_CHECK enum pay_status pay_fact_withhold(struct pay_try *turn, const struct pay_item *item,
                                                 const struct pay_payment_event *dead,
                                                 struct pay_err *err);
/** @brief Publish stored bytes again, as they were. */
PAY_MUST_CHECK enum pay_status pay_fact_again(struct pay_try *turn, struct pay_unit *unit,
                                              struct pay_item *item, struct pay_bytes payload,
                                              struct pay_err *err);
/** @return false: no room. */
PAY_MUST_CHECK bool pay_outbox_header(struct pay_arena *arena, struct pay_store_outbox_row *row,
                                      const char *name, struct pay_str value);
/** @brief An outbox row of a topic, keyed and sharded. @return NULL: the arena is full. */
struct pay_store_outbox_row *pay_outbox_row(struct pay_try *turn, struct pay_unit *unit,
                                            struct pay_str topic, struct pay_str key);
/** @brief Load what the planned jobs need and encode them. */
PAY_MUST_CHECK enum pay_status pay_jobs_make(struct pay_try *turn, struct pay_list *units,
                                             struct pay_err *err);

/* ---- money.c: captures, refunds, disputes, approvals ---- */

/** Rows of their tables, over all payments that won. */
struct pay_money_rows {
    struct pay_list new_actions[PAY_MONEY_KIND_COUNT], actions[PAY_MONEY_KIND_COUNT];
    struct pay_list new_disputes, disputes, days, new_requests, requests, approvals;
};
/** What the items of a load need beside their payments' rows. */
struct pay_money_asks {
    struct pay_list keys;      /**< pay_store_key_ask */
    struct pay_list key_items; /**< pay_item, one per key. */
    struct pay_list days;      /**< pay_snapshot */
    struct pay_str *request_ids;
    size_t request_id_count, request_id_cap;
};
/** @brief Collect what one item needs. @return false: no room. */
PAY_MUST_CHECK bool pay_money_ask(struct pay_arena *arena, struct pay_unit *unit,
                                  struct pay_item *item, struct pay_money_asks *asks);
/** @brief Fill the requests that were loaded from what was signed. */
PAY_MUST_CHECK enum pay_status pay_money_open_requests(struct pay_try *turn,
                                                       const struct pay_store_load *loaded,
                                                       struct pay_err *err);
/** @brief Before an item is decided: what only this input needs. */
void pay_money_prepare(const struct pay_try *turn, struct pay_unit *unit,
                       const struct pay_item *item, struct pay_decide_input *in);
/** @brief Collect the changed rows of a payment that won. @return false: no room. */
PAY_MUST_CHECK bool pay_money_collect(struct pay_arena *arena, struct pay_unit *unit,
                                      struct pay_money_rows *rows);
/** @brief Queue them; attempts and amounts are queued already. */
PAY_MUST_CHECK enum pay_status
pay_money_queue(struct pay_store *store, const struct pay_money_rows *rows, struct pay_err *err);

/* ---- orphan.c ---- */

/** @return psp/psp_account/transport_key of the event decided: of its deadline and case. */
struct pay_str pay_orphan_name(struct pay_try *turn, const struct pay_item *item);
/** @brief The stored row that a command names is not waiting any more. */
PAY_MUST_CHECK bool pay_orphan_stored_done(struct pay_try *turn, const struct pay_item *item);
/** @brief An event whose payment or attempt is not there: keep it, or give it up. */
PAY_MUST_CHECK bool pay_orphan_keep(struct pay_try *turn, struct pay_unit *unit,
                                    struct pay_item *item);
/** @brief An event that is no payment of ours: recorded, nothing else. */
PAY_MUST_CHECK bool pay_orphan_foreign(struct pay_try *turn, struct pay_unit *unit,
                                       struct pay_item *item);
/** @brief A stored event was decided at last. */
PAY_MUST_CHECK bool pay_orphan_settled(struct pay_try *turn, struct pay_unit *unit,
                                       struct pay_item *item);
/** @brief A deadline was decided: if it was poison when it came before, it is that no more. */
PAY_MUST_CHECK bool pay_orphan_deadline_settled(struct pay_try *turn, struct pay_unit *unit,
                                                const struct pay_item *item);

/* ---- decide.c: items to emissions ---- */

/** @brief Fill the routes' traits from the accounts of this turn. */
void pay_unit_set_traits(const struct pay_worker *worker, struct pay_unit *unit);
/** @brief Decide all items of a unit whose snapshot is loaded; collects what is to be written. */
PAY_MUST_CHECK enum pay_status pay_unit_decide(struct pay_try *turn, struct pay_unit *unit,
                                               struct pay_err *err);

/* ---- poison.c ---- */

/** @brief What is kept of a poison item: its inbox row. */
PAY_MUST_CHECK enum pay_status pay_poison_keep(struct pay_try *turn, struct pay_item *item,
                                               struct pay_err *err);
/** @brief When the inbox has answered: its case, and the pause of the deadline that it was. Of the
 * copies of one deadline the first has case and letter. @return false: no room. */
PAY_MUST_CHECK bool pay_poison_settle(struct pay_try *turn, struct pay_item *item);
/** @brief Its dead letter's bytes. @param out reset first. */
PAY_MUST_CHECK enum pay_status pay_poison_letter(struct pay_worker *worker,
                                                 const struct pay_item *item, int64_t now_us,
                                                 struct pay_buf *out, struct pay_err *err);

/* ---- apply.c: the transaction ---- */

/**
 * @brief Steps 1 to 7 for some items: one transaction, committed or rolled back.
 * @return PAY_REJECT: the data of one of them is refused. PAY_RETRY, PAY_UNKNOWN: again, connected
 *         anew where needed; a repeat finds what was committed in the inbox.
 */
PAY_MUST_CHECK enum pay_status pay_apply(struct pay_worker *worker, struct pay_item **items,
                                         size_t count, struct pay_err *err);

#endif /* PAY_PROCESSOR_WORK_H */
