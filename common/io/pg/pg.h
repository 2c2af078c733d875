/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file pg.h
 * @brief One PostgreSQL connection: binary parameters, statements prepared at first use, pipelined.
 *
 * Statements are queued and then run in one round trip; results come back in the order queued.
 *
 *     pay_pg_queue_begin(pg, err); pay_pg_queue(pg, &stmt_a, params, err); ...
 *     pay_pg_run(pg, results, 2, err);    (the answer of BEGIN is a result like any other)
 *     pay_pg_commit(pg, err);
 *
 * Ownership: a struct pay_pg_result belongs to the caller; what its readers return is borrowed from
 * it. Parameters are copied when queued. Statements (struct pay_pg_stmt) are static. Threads: one
 * at a time per connection. Failure: by SQLSTATE (pg_error.h). After a failed run the queue is
 * empty, no result is given, and a transaction that was open must be rolled back. An answer that
 * never came is PAY_UNKNOWN when what was sent could have been committed (COMMIT, or a statement
 * that writes outside a transaction), else PAY_RETRY: the server rolls back what a lost connection
 * left open. The connection is then not usable: pay_pg_reconnect(). err.text has SQLSTATE,
 * constraint and statement name, never values. Does not work behind a pooler in transaction mode
 * (statements are prepared per connection).
 */
#ifndef PAY_IO_PG_PG_H
#define PAY_IO_PG_PG_H

#include "common/base/str.h"
#include "common/io/pg/pg_error.h"

#define PAY_PG_PARAMS_MAX 64 /**< Parameters of one statement. */
#define PAY_PG_QUEUE_MAX 64  /**< Statements in one run. */
#define PAY_PG_STMTS_MAX 512 /**< Different statements on one connection. */
#define PAY_PG_COLUMNS_MAX 128

struct pay_pg;
struct pay_pg_result;
struct pay_pg_params;

/* ---- connection ---- */

/** Text is copied; NULL or "" and 0 take the default. */
struct pay_pg_options {
    const char *conninfo;         /**< libpq's; settings below win over it. */
    const char *password_file;    /**< File with the password alone. */
    const char *application_name; /**< Such as "payfact-processor". */
    const char *search_path;      /**< Default "payfact". */
    int connect_timeout_ms;       /**< Default 5000. */
    int statement_timeout_ms;     /**< Default 30000; -1: none. On the server. */
    int answer_timeout_ms;   /**< Default statement_timeout_ms + 5000; -1: none. On this side. */
    int tcp_user_timeout_ms; /**< Default 10000. */
    bool read_only;          /**< default_transaction_read_only = on. */
};

/**
 * @brief Connect. Blocks up to connect_timeout_ms (name look-up not counted).
 * @return PAY_RETRY when the server is away or refuses, PAY_FATAL for conninfo or password file.
 */
PAY_MUST_CHECK enum pay_status pay_pg_open(const struct pay_pg_options *options,
                                           struct pay_pg **ret_pg, struct pay_err *err);
/** @brief Make a handle that is not connected yet: pay_pg_reconnect() connects. PAY_FATAL as above.
 */
PAY_MUST_CHECK enum pay_status pay_pg_new(const struct pay_pg_options *options,
                                          struct pay_pg **ret_pg, struct pay_err *err);
/** @return always NULL; copes with NULL. */
struct pay_pg *pay_pg_free(struct pay_pg *pg);
/** @brief Drop the connection, if any, and make a new one with the same options. As pay_pg_open().
 */
PAY_MUST_CHECK enum pay_status pay_pg_reconnect(struct pay_pg *pg, struct pay_err *err);
/** @brief Drop the connection; the handle stays for pay_pg_reconnect(). */
void pay_pg_disconnect(struct pay_pg *pg);
/** @return false: pay_pg_reconnect() first. */
bool pay_pg_usable(const struct pay_pg *pg);
/** @return process id of the server's backend; 0 when not connected. */
int pay_pg_backend_pid(const struct pay_pg *pg);

/** Pause before the n-th reconnect: doubled from min_ms to max_ms, then a random half to whole of
 * it. */
struct pay_pg_backoff {
    int min_ms; /**< 0: 100. */
    int max_ms; /**< 0: 5000. */
    int tries;  /**< Zero it after a success. */
};
int pay_pg_backoff_next_ms(struct pay_pg_backoff *backoff);

/* ---- parameters: $1, $2 ... in the order added ---- */

enum pay_pg_type {
    PAY_PG_TEXT,
    PAY_PG_INT2,
    PAY_PG_INT4,
    PAY_PG_INT8,
    PAY_PG_BOOL,
    PAY_PG_BYTEA,
    PAY_PG_TIMESTAMPTZ, /**< int64_t microseconds since 1970. */
    PAY_PG_DATE,        /**< int32_t days since 1970. */
    PAY_PG_TID,         /**< Where a row version stands: block << 16 | item. */
    PAY_PG_TYPE_COUNT
};

/** @param bytes_max of all encoded values; more makes the run PAY_REJECT. @return NULL: out of
 * memory. */
struct pay_pg_params *pay_pg_params_new(size_t bytes_max);
/** @return always NULL; copes with NULL. */
struct pay_pg_params *pay_pg_params_free(struct pay_pg_params *params);
/** Empty, to be filled again; memory is kept. */
void pay_pg_params_reset(struct pay_pg_params *params);

/*
 * Each call adds one parameter, or, between pay_pg_array_begin() and pay_pg_array_end(), one
 * element. An absent text or bytes value is NULL. Mixing types inside an array is a bug (asserted).
 */
void pay_pg_add_text(struct pay_pg_params *params, struct pay_str value);
void pay_pg_add_text_c(struct pay_pg_params *params, const char *value); /**< NULL is NULL. */
void pay_pg_add_int2(struct pay_pg_params *params, int16_t value);
void pay_pg_add_int4(struct pay_pg_params *params, int32_t value);
void pay_pg_add_int8(struct pay_pg_params *params, int64_t value);
void pay_pg_add_bool(struct pay_pg_params *params, bool value);
void pay_pg_add_bytea(struct pay_pg_params *params, struct pay_bytes value);
void pay_pg_add_timestamptz(struct pay_pg_params *params, int64_t us_since_1970);
void pay_pg_add_date(struct pay_pg_params *params, int32_t days_since_1970);
void pay_pg_add_tid(struct pay_pg_params *params, uint64_t tid);
void pay_pg_add_null(struct pay_pg_params *params, enum pay_pg_type type);
/** A one-dimensional array parameter such as int8[]; may be empty. Not nested. */
void pay_pg_array_begin(struct pay_pg_params *params, enum pay_pg_type element);
void pay_pg_array_end(struct pay_pg_params *params);
/** Whole columns at once. @param nulls NULL: none is NULL. */
void pay_pg_add_text_array(struct pay_pg_params *params, const struct pay_str *items, size_t count);
void pay_pg_add_int8_array(struct pay_pg_params *params, const int64_t *items, const bool *nulls,
                           size_t count);

/* ---- statements ---- */

struct pay_pg_stmt {
    const char *name; /**< Unique in the program, at most 62 characters. */
    const char *sql;
    bool read_only; /**< Only reads: a lost answer outside a transaction is PAY_RETRY. */
};

/**
 * @brief Queue one statement; nothing waits. @param params NULL: none.
 * @return PAY_RETRY: the connection is not usable. PAY_REJECT: parameters over their maximum.
 * PAY_FATAL: queue or statement table full. After any failure call pay_pg_drop_queue() or
 * pay_pg_rollback().
 */
PAY_MUST_CHECK enum pay_status pay_pg_queue(struct pay_pg *pg, const struct pay_pg_stmt *stmt,
                                            const struct pay_pg_params *params,
                                            struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_pg_queue_begin(struct pay_pg *pg, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_pg_queue_commit(struct pay_pg *pg, struct pay_err *err);
/** @return number of statements queued now. */
size_t pay_pg_queued(const struct pay_pg *pg);
/** @brief Send what is queued without waiting for the answers; pay_pg_run() then collects them. */
PAY_MUST_CHECK enum pay_status pay_pg_send(struct pay_pg *pg, struct pay_err *err);
/**
 * @brief Send what is queued, wait for all answers.
 * COMMIT must be the last of its run (asserted).
 * @param ret_results array of exactly @p count == pay_pg_queued() entries; NULL: results are
 * dropped.
 * @return the first failure in order; the server skipped what came after it in this run.
 */
PAY_MUST_CHECK enum pay_status pay_pg_run(struct pay_pg *pg, struct pay_pg_result *ret_results[],
                                          size_t count, struct pay_err *err);
/** @brief Forget what is queued (and drain what was sent). May make the connection unusable. */
void pay_pg_drop_queue(struct pay_pg *pg);
/** @brief Queue one and run. @param ret_result NULL: not wanted. */
PAY_MUST_CHECK enum pay_status pay_pg_exec(struct pay_pg *pg, const struct pay_pg_stmt *stmt,
                                           const struct pay_pg_params *params,
                                           struct pay_pg_result **ret_result, struct pay_err *err);
/** @brief Several statements as text, no parameters, no results: migrations. Own transaction unless
 * one is open. */
PAY_MUST_CHECK enum pay_status pay_pg_script(struct pay_pg *pg, const char *sql,
                                             struct pay_err *err);

PAY_MUST_CHECK enum pay_status pay_pg_begin(struct pay_pg *pg, struct pay_err *err);
/**
 * @return PAY_UNKNOWN: the answer was lost, or the server warned that a standby may not have it:
 * read back. PAY_RETRY: certainly not committed.
 */
PAY_MUST_CHECK enum pay_status pay_pg_commit(struct pay_pg *pg, struct pay_err *err);
/** @brief End the transaction, drop the queue. On any trouble drops the connection: that rolls back
 * too. */
void pay_pg_rollback(struct pay_pg *pg);
/** @return true between BEGIN and its end, as the server last said. */
bool pay_pg_in_transaction(const struct pay_pg *pg);
/** @brief The server's now(), microseconds since 1970. */
PAY_MUST_CHECK enum pay_status pay_pg_server_now(struct pay_pg *pg, int64_t *ret_us,
                                                 struct pay_err *err);

/** Details of the latest failure on this connection. */
struct pay_pg_failure {
    struct pay_pg_class what;
    char sqlstate[6]; /**< "" : no answer from the server. */
    char constraint[64];
    char table[64];
    const char *stmt;    /**< Name of the statement; NULL: none. */
    size_t index;        /**< Its place in the run, from 0. */
    const char *message; /**< The server's text. May contain values: for operators' tools, never for
                            logs. */
};
const struct pay_pg_failure *pay_pg_failure(const struct pay_pg *pg);

/* ---- results. Asking for a row, column or type that is not there is a bug (asserted). ---- */

/** @return always NULL; copes with NULL. */
struct pay_pg_result *pay_pg_result_free(struct pay_pg_result *result);
/** Free @p count results and set them NULL. */
void pay_pg_results_free(struct pay_pg_result *results[], size_t count);
size_t pay_pg_rows(const struct pay_pg_result *result);
size_t pay_pg_columns(const struct pay_pg_result *result);
/** @return rows that INSERT, UPDATE, DELETE or SELECT touched, as the server counted. */
int64_t pay_pg_affected(const struct pay_pg_result *result);
bool pay_pg_is_null(const struct pay_pg_result *result, size_t row, size_t column);
/** text, varchar, char(n), name, json. NUL-terminated. NULL gives absent. */
struct pay_str pay_pg_text(const struct pay_pg_result *result, size_t row, size_t column);
/** bytea. NULL gives absent. */
struct pay_bytes pay_pg_bytea(const struct pay_pg_result *result, size_t row, size_t column);
/** int2, int4 or int8; not NULL. */
int64_t pay_pg_int(const struct pay_pg_result *result, size_t row, size_t column);
bool pay_pg_bool(const struct pay_pg_result *result, size_t row, size_t column);
/** Microseconds since 1970; infinity is INT64_MAX, -infinity INT64_MIN. */
int64_t pay_pg_timestamptz(const struct pay_pg_result *result, size_t row, size_t column);
/** Days since 1970. */
int32_t pay_pg_date(const struct pay_pg_result *result, size_t row, size_t column);
uint64_t pay_pg_tid(const struct pay_pg_result *result, size_t row, size_t column);
/** The same with a value for NULL. */
int64_t pay_pg_int_or(const struct pay_pg_result *result, size_t row, size_t column,
                      int64_t if_null);
int64_t pay_pg_timestamptz_or(const struct pay_pg_result *result, size_t row, size_t column,
                              int64_t if_null);

/** One-dimensional array of a result; borrowed from it. NULL gives count 0 and is_null. */
struct pay_pg_array {
    const uint8_t *at;
    const uint8_t *end;
    enum pay_pg_type element;
    size_t count; /**< Elements left. */
    bool is_null;
};
struct pay_pg_array pay_pg_array_of(const struct pay_pg_result *result, size_t row, size_t column);
/** Next element; call count times. Text is not NUL-terminated; NULL gives absent. */
struct pay_str pay_pg_array_text(struct pay_pg_array *array);
struct pay_bytes pay_pg_array_bytea(struct pay_pg_array *array);
/** int2, int4, int8, bool, timestamptz, date. @return false when the element is NULL. */
bool pay_pg_array_int(struct pay_pg_array *array, int64_t *ret_value);

#endif /* PAY_IO_PG_PG_H */
