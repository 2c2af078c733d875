/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file adapter.h
 * @brief What a payment service provider is to payfact: one struct of functions and constants.
 *
 * Bytes in, values out: an adapter reads callbacks and answers, and writes requests; it never calls
 * anybody, never logs and never decides. Adding a PSP is one file pair and one row in registry.c.
 *
 * Ownership: what comes in is borrowed for the call; what goes out lives in the arena given (or is
 * static). Threads: adapters have no state; any thread, one arena each. Failure: enum pay_status
 * with pay_err.code = enum pay_psp_reason; PAY_REJECT is the sender's fault, PAY_RETRY is ours
 * (memory). No text of an error and no field of an event carries card data, personal data or a
 * secret; only an event's action may hold what the customer's device needs.
 *
 *     callback:  verify() -> parse() -> answer()
 *     call:      choose_query() -> build() -> [store the request] -> authorize() -> send -> read()
 */
#ifndef PAY_PSP_ADAPTER_H
#define PAY_PSP_ADAPTER_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/core/event.h"
#include "common/core/snapshot.h"
#include "common/crypto/secret.h"

#define PAY_PSP_KEYS_MAX 8            /**< Callback keys (or credentials) of an account. */
#define PAY_PSP_KEY_ID_SIZE 65        /**< Id of a key: 64 bytes at most. */
#define PAY_PSP_SETTINGS_MAX 16       /**< Settings of an account. */
#define PAY_PSP_REQUEST_HEADERS_MAX 8 /**< Without the credentials that authorize() adds. */
#define PAY_PSP_REQUEST_BYTES_MAX 65536
#define PAY_PSP_EXTRA_MAX 16           /**< Adapter-specific parameters of a SUBMIT. */
#define PAY_PSP_BODY_BYTES_MAX 1048576 /**< A callback or an answer; longer is refused. */
#define PAY_PSP_ITEMS_MAX 64           /**< Events out of one callback or answer. */

/** Why a callback is refused; the names are metric labels and those of the signature vectors. */
enum pay_psp_reason {
    PAY_PSP_OK,
    PAY_PSP_HEADER_MISSING,
    PAY_PSP_HEADER_REPEATED,
    PAY_PSP_MALFORMED_HEADER,
    PAY_PSP_NO_V1_SIGNATURE,
    PAY_PSP_SIGNATURE_MISSING,
    PAY_PSP_SIGNATURE_MISMATCH,
    PAY_PSP_BAD_BASE64,
    PAY_PSP_TIMESTAMP_TOO_OLD,
    PAY_PSP_TIMESTAMP_IN_FUTURE,
    PAY_PSP_UNSUPPORTED_ALGORITHM,
    PAY_PSP_UNKNOWN_SERIAL,
    PAY_PSP_DECRYPT_FAILED,
    PAY_PSP_NO_KEYS,         /**< The account has no callback key: nothing can be verified. */
    PAY_PSP_NOT_JSON,        /**< parse(): from here on. Also a member twice, bad UTF-8, a NUL. */
    PAY_PSP_MALFORMED_EVENT, /**< Not what this PSP calls an event. */
    PAY_PSP_FIELD_MISSING,   /**< A field that the event cannot be understood without. */
    PAY_PSP_BAD_AMOUNT,      /**< Not an integer, negative, or it does not convert exactly. */
    PAY_PSP_BAD_CURRENCY,
    PAY_PSP_WRONG_MODE,    /**< Test event on a live account, or the reverse. */
    PAY_PSP_WRONG_ACCOUNT, /**< Of another account of the same PSP. */
    PAY_PSP_TOO_LARGE,
    PAY_PSP_NO_MEMORY,     /**< PAY_RETRY: the one reason that is not the sender's. */
    PAY_PSP_NOT_SUPPORTED, /**< build(): this PSP has no such call. */
    PAY_PSP_BAD_JOB,       /**< build(): a field of the job is missing or unusable. */
    PAY_PSP_REASON_COUNT
};

/** @return static name such as "signature_mismatch"; never NULL. */
const char *pay_psp_reason_name(enum pay_psp_reason reason);
/** @return PaymentInput.refused.reason_code: "SIGNATURE", "TIME_WINDOW" or "FORMAT". */
const char *pay_psp_refusal_code(enum pay_psp_reason reason);

/** Same layout of name and value as the http folders use; copied by hand between them. */
struct pay_psp_header {
    struct pay_str name; /**< Compared without case. */
    struct pay_str value;
};

struct pay_psp_key {
    char id[PAY_PSP_KEY_ID_SIZE];
    const char *role; /**< Credentials: "secret_key" ...; callback keys: NULL. Static or owned by
                         the account's owner. */
    const struct pay_secret *secret;
};

struct pay_psp_setting {
    const char *name;
    const char *value;
};

/** What an adapter knows of an account; common/accounts fills it and owns all it points to. */
struct pay_psp_account {
    const char *id;
    const char *psp;
    const char *merchant_id;
    bool live;
    const char *endpoint; /**< No slash at the end. */
    struct pay_psp_key callback_keys[PAY_PSP_KEYS_MAX];
    size_t callback_key_count;
    struct pay_psp_key credentials[PAY_PSP_KEYS_MAX];
    size_t credential_count;
    struct pay_psp_setting settings[PAY_PSP_SETTINGS_MAX];
    size_t setting_count;
};

/** A callback as it arrived; headers in order, duplicates kept. */
struct pay_psp_notification {
    struct pay_str method;
    struct pay_str path;
    struct pay_str query;
    const struct pay_psp_header *headers;
    size_t header_count;
    struct pay_bytes body; /**< Exactly as received. */
};

/** One event with what the envelope (PaymentInput) needs. */
struct pay_psp_item {
    struct pay_event event;
    enum pay_source source;       /**< WEBHOOK; read(): SYNC, QUERY or LOCAL. */
    struct pay_str transport_key; /**< 200 bytes at most, different for each item. */
    struct pay_str business_key;  /**< 255 bytes at most. */
    struct pay_str payment_id;    /**< From our own number in the event; absent: to be resolved. */
    struct pay_str partition_key; /**< payment_id, else "<psp>/<psp_account>/<reference>". */
    int64_t occurred_at_us;       /**< The PSP's word; 0: not said. */
};

struct pay_psp_items {
    struct pay_psp_item *items; /**< In the order in which they must be decided. */
    size_t count;
};

/** What became of a callback, to be said in the PSP's own way. */
enum pay_psp_outcome {
    PAY_PSP_DURABLE,     /**< Kafka has it. Also for a type that nobody knows. */
    PAY_PSP_DUPLICATE,   /**< It was durable already. */
    PAY_PSP_REFUSED,     /**< Signature, time window or format. */
    PAY_PSP_MISMATCH,    /**< `strict` answers: unknown order or another amount. */
    PAY_PSP_UNAVAILABLE, /**< Could not be kept in time: send it again. */
    PAY_PSP_BODY_TOO_LARGE,
    PAY_PSP_TOO_FAST,
    PAY_PSP_UNKNOWN_ACCOUNT,
    PAY_PSP_OUTCOME_COUNT
};

struct pay_psp_answer {
    unsigned status;
    const char *content_type; /**< Static. */
    struct pay_bytes body;    /**< Static; never absent, may be empty where the PSP wants none. */
    unsigned retry_after_s;   /**< 0: no Retry-After. */
};

struct pay_psp_param {
    struct pay_str name;
    struct pay_str value;
};

/** A PspJob as an adapter sees it; the fields mean what PspJob.avsc says. */
struct pay_psp_request_job {
    enum pay_job_kind kind;
    struct pay_str job_id;
    struct pay_str payment_id;
    struct pay_str attempt_id;
    struct pay_str action_id;  /**< Capture or refund; absent for the attempt itself. */
    struct pay_str request_no; /**< attempt_id or action_id. */
    int number;                /**< n of the job id, from 1. */
    struct pay_str method;
    struct pay_str provider_reference; /**< The main one, once bound; else absent. */
    const struct pay_reference *references;
    size_t reference_count;
    int64_t amount_minor; /**< Of this action; 0 for CANCEL and queries of the attempt. */
    int64_t attempt_amount_minor;
    struct pay_str currency;
    enum pay_capture_mode capture_mode;
    bool is_final; /**< CAPTURE: release the rest. */
    struct pay_str instrument;
    struct pay_str payer_id;
    struct pay_str payer_ip;
    struct pay_str return_url;
    const struct pay_psp_param *extra;
    size_t extra_count;
    struct pay_bytes redirect_data; /**< CONFIRM. */
    struct pay_str notify_url;
    struct pay_str description;
    struct pay_str reason_code;
    int64_t expires_at_us; /**< To give to the PSP; 0: none. */
    bool may_replay; /**< QUERY*: the money job's request is stored and now < its replay_until. */
};

/** A request without credentials: fit to be stored (sealed) and sent again unchanged. */
struct pay_psp_request {
    const char *method; /**< Static: "GET", "POST" ... */
    struct pay_str url;
    struct pay_psp_header headers[PAY_PSP_REQUEST_HEADERS_MAX]; /**< Idempotency key included. */
    size_t header_count;
    struct pay_bytes body;          /**< Absent: none. */
    struct pay_str idempotency_key; /**< Absent: a query. */
};

/** What is known of the delivery; the order is that of enum pay_http_delivery. */
enum pay_psp_delivery {
    PAY_PSP_NOT_SENT, /**< Certain: no byte left. */
    PAY_PSP_UNCLEAR,  /**< May have arrived; no complete answer. */
    PAY_PSP_ANSWERED, /**< A complete HTTP answer of any status. */
    PAY_PSP_DELIVERY_COUNT
};

/** One send of a job and what came back. */
struct pay_psp_response {
    const struct pay_psp_request_job *job;
    int send_no;
    bool only_send; /**< No replay, no earlier send or former job of this action that was not
                       certainly unsent: the condition of every "definite no". */
    enum pay_query_by query_by; /**< NONE: the money call itself or a CANCEL. */
    int64_t asked_at_us;        /**< By our clock, before the first byte left; 0: nothing left. */
    enum pay_psp_delivery delivery;
    int http_status;
    const struct pay_psp_header *headers;
    size_t header_count;
    struct pay_bytes body;
};

/** read(): the events, and what the PSP said about trying again. */
struct pay_psp_reading {
    struct pay_psp_items items; /**< At least one. */
    int should_retry;           /**< 1 yes, 0 no, -1 not said. Of the transport, not of the fact. */
    unsigned retry_after_s;     /**< 0: not said. */
    bool bad_credentials;       /**< 401 or 403: count it, alert, do not go on converging. */
    bool too_many;              /**< 429: slow down. */
};

/** A name that an account may or must have under `credentials` or `settings`. */
struct pay_psp_name_rule {
    const char *name; /**< NULL ends the table. */
    bool is_required;
};

struct pay_psp_adapter {
    const char *name; /**< "stripe" */

    /**
     * @brief Is it from the PSP? Looks at the exact bytes only; constant time over all keys.
     * @param ret_key_id id of the key that verified, owned by the account; set on PAY_PSP_OK.
     */
    enum pay_psp_reason (*verify)(const struct pay_psp_account *account,
                                  const struct pay_psp_notification *raw, int64_t now_us,
                                  struct pay_str *ret_key_id);
    /** @brief A verified callback to 1..n items. PAY_REJECT: answer REFUSED. */
    enum pay_status (*parse)(const struct pay_psp_account *account,
                             const struct pay_psp_notification *raw, struct pay_arena *arena,
                             struct pay_psp_items *ret_items, struct pay_err *err);
    struct pay_psp_answer (*answer)(enum pay_psp_outcome outcome);
    /** @brief How to ask about this QUERY* job; NONE: nothing can be asked (callbacks only). */
    enum pay_query_by (*choose_query)(const struct pay_psp_request_job *job);
    /**
     * @brief Write the request. Not for IDEMPOTENT_REPLAY: that is the stored request itself.
     * @param query_by NONE for money calls and CANCEL.
     * @return PAY_REJECT: nothing can be sent for this job, now or later.
     */
    enum pay_status (*build)(const struct pay_psp_account *account,
                             const struct pay_psp_request_job *job, enum pay_query_by query_by,
                             struct pay_arena *arena, struct pay_psp_request *ret_request,
                             struct pay_err *err);
    /**
     * @brief Credentials (or the request's signature) as one more header; never to be stored.
     * @param ret_header in the arena: wipe or reset it after the call.
     */
    enum pay_status (*authorize)(const struct pay_psp_account *account,
                                 const struct pay_psp_request *request, struct pay_arena *arena,
                                 struct pay_psp_header *ret_header, struct pay_err *err);
    /**
     * @brief What an answer, or none, means. Total: an answer that is not understood is UNKNOWN of
     * a money call, QUERY_FAILED of anything else. @return PAY_RETRY only when the arena is full.
     */
    enum pay_status (*read)(const struct pay_psp_account *account,
                            const struct pay_psp_response *response, struct pay_arena *arena,
                            struct pay_psp_reading *ret_reading, struct pay_err *err);
    /** @brief The adapter's own rules for an account, e.g. a live key in a test account. */
    enum pay_status (*check_account)(const struct pay_psp_account *account, struct pay_err *err);

    /* Constants. */
    struct pay_psp_traits traits;     /**< Defaults; the account's `unknown` overlays them. */
    enum pay_query_by query_order[4]; /**< In order of preference, ends with NONE. */
    int64_t replay_lifetime_us; /**< Documented lifetime of an idempotency key less a tenth. */
    unsigned answer_timeout_ms; /**< A callback must be answered by then. */
    int64_t tolerance_us;       /**< Time window of a callback, both ways; 0: none. */
    size_t callback_bytes_max;
    size_t reference_bytes_max; /**< Of the PSP's references. */
    size_t request_no_bytes_max;
    size_t idempotency_key_bytes_max;
    size_t description_bytes_max;
    const struct pay_psp_name_rule *credential_rules;
    const struct pay_psp_name_rule *setting_rules;
    const char *const *extra_names; /**< Of job.extra; NULL ends the table. */
};

/* ---- Helpers that every adapter and ingest use ---- */

/** @return the first header of that name (without case); NULL when there is none. */
const struct pay_psp_header *pay_psp_header_find(const struct pay_psp_header *headers, size_t count,
                                                 const char *name);
/** @return value of a setting; NULL when it is not set. */
const char *pay_psp_setting(const struct pay_psp_account *account, const char *name);
/** @return the credential of that role; NULL when there is none. */
const struct pay_psp_key *pay_psp_credential(const struct pay_psp_account *account,
                                             const char *role);
/** @return the job's reference of that kind; absent when none is bound. */
struct pay_str pay_psp_job_reference(const struct pay_psp_request_job *job,
                                     enum pay_reference_kind kind);

/** What can become of an action, by the kind of job that moves it. */
enum pay_psp_result {
    PAY_PSP_RESULT_SUBMITTED,
    PAY_PSP_RESULT_NOT_SENT,
    PAY_PSP_RESULT_UNKNOWN,
    PAY_PSP_RESULT_FAILED,
    PAY_PSP_RESULT_NOT_FOUND,
    PAY_PSP_RESULT_COUNT
};

/**
 * @brief E.g. (SUBMIT, UNKNOWN) = ATTEMPT_UNKNOWN, (REFUND, NOT_SENT) = REFUND_NOT_SENT. CANCEL and
 * queries have no such results of their own and give QUERY_FAILED, except NOT_FOUND of a query.
 */
enum pay_event_type pay_psp_result_type(enum pay_job_kind kind, enum pay_psp_result result);

/**
 * @brief An event of our own about a call: ATTEMPT_SUBMITTED, *_NOT_SENT, *_UNKNOWN, with its keys.
 * Uses job, send_no, query_by, asked_at_us and http_status of @p response.
 */
PAY_MUST_CHECK enum pay_status
pay_psp_local_item(const struct pay_psp_account *account, const struct pay_psp_response *response,
                   enum pay_psp_result result, struct pay_arena *arena,
                   struct pay_psp_item *ret_item, struct pay_err *err);
/**
 * @brief Fill payment_id, partition_key, business_key and (if absent) normalized_result of an item
 * whose event is complete. @return false when the arena is full.
 */
PAY_MUST_CHECK bool pay_psp_item_finish(struct pay_psp_item *item, struct pay_arena *arena);

#endif /* PAY_PSP_ADAPTER_H */
