/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file statement.h
 * @brief Inside common/store: queue a statement with its expected count, rows as column arrays.
 *
 * A multi-row statement takes its rows as arrays, one parameter per column. A static table of
 * struct pay_column says where each column stands in the row's struct, so that no statement has a
 * loop of its own. Ownership and threads: store.h.
 */
#ifndef PAY_STORE_STATEMENT_H
#define PAY_STORE_STATEMENT_H

#include "common/store/store.h"

#define PAY_STORE_ANY_COUNT (-1) /**< Whatever number of rows. */

enum pay_column_kind {
    PAY_COLUMN_CHARS,      /**< char[] in the row; "" stays "". */
    PAY_COLUMN_CHARS_NULL, /**< char[]; "" is NULL. */
    PAY_COLUMN_STR,        /**< struct pay_str; absent is NULL. */
    PAY_COLUMN_CSTR,       /**< const char *; NULL is NULL. */
    PAY_COLUMN_BYTES,      /**< struct pay_bytes; absent is NULL. */
    PAY_COLUMN_INT2,       /**< int */
    PAY_COLUMN_INT4,       /**< int */
    PAY_COLUMN_INT8,       /**< int64_t */
    PAY_COLUMN_INT8_NULL,  /**< int64_t; 0 is NULL. */
    PAY_COLUMN_BOOL,       /**< bool */
    PAY_COLUMN_TIME,       /**< int64_t us since 1970; 0 is NULL. */
    PAY_COLUMN_DATE,       /**< int32_t days since 1970. */
    PAY_COLUMN_NAME,       /**< An enum; as the text that name() gives. */
    PAY_COLUMN_LEVEL,      /**< An enum, as int2 of its number. */
    PAY_COLUMN_KIND_COUNT
};

struct pay_column {
    enum pay_column_kind kind;
    size_t offset;            /**< In the row's struct. */
    const char *(*name)(int); /**< NAME; a NULL result is NULL. */
};

/** A static table of columns. */
struct pay_columns {
    const struct pay_column *items;
    size_t count;
};
#define COLUMNS(table_) ((struct pay_columns){(table_), sizeof(table_) / sizeof((table_)[0])})

/** @brief Empty the store's parameters and add @p count rows, one array parameter per column. */
void pay_store_add_columns(struct pay_store *store, struct pay_columns columns,
                           const void *const *rows, size_t count);

/** @brief Empty the store's parameters and give them. */
struct pay_pg_params *pay_store_params(struct pay_store *store);
/** @brief The store's parameters as they are, to add more behind the columns. */
struct pay_pg_params *pay_store_more_params(struct pay_store *store);
/**
 * @brief Queue @p stmt with the store's parameters.
 * @param expected rows that it must touch; PAY_STORE_ANY_COUNT: any.
 */
PAY_MUST_CHECK enum pay_status pay_store_queue(struct pay_store *store,
                                               const struct pay_pg_stmt *stmt, int64_t expected,
                                               struct pay_err *err);
/** @brief One multi-row statement: columns only, as many rows touched as given. 0 rows: nothing. */
PAY_MUST_CHECK enum pay_status pay_store_queue_rows(struct pay_store *store,
                                                    const struct pay_pg_stmt *stmt,
                                                    struct pay_columns columns,
                                                    const void *const *rows, size_t count,
                                                    struct pay_err *err);
/** @brief Statements queued: the index that the next one will have in the run. */
size_t pay_store_queued(const struct pay_store *store);
const struct pay_pg_result *pay_store_result(const struct pay_store *store, size_t index);
void pay_store_results_free(struct pay_store *store);
/** @brief Run one statement at once with the store's parameters; its result is result 0. */
PAY_MUST_CHECK enum pay_status pay_store_exec(struct pay_store *store,
                                              const struct pay_pg_stmt *stmt, struct pay_err *err);

/* Names of enums as columns. */
const char *pay_column_order_status(int value);
const char *pay_column_attempt_status(int value);
const char *pay_column_capture_mode(int value);
const char *pay_column_intent(int value);
const char *pay_column_cancel_cause(int value);  /**< NONE is NULL. */
const char *pay_column_failure_class(int value); /**< NONE is NULL. */
const char *pay_column_reference_kind(int value);
const char *pay_column_job_kind(int value);
const char *pay_column_case_kind(int value);
const char *pay_column_deadline_kind(int value);
const char *pay_column_aggregate(int value);
const char *pay_column_verdict(int value);
const char *pay_column_source(int value);
const char *pay_column_row_change(int value); /**< COUNTED: the row's version stays. */
const char *pay_column_money_status(int value);
const char *pay_column_origin(int value);
const char *pay_column_dispute_status(int value);
const char *pay_column_dispute_funds(int value);
const char *pay_column_request_status(int value);
const char *pay_column_command_type(int value);

/* Reading. */
/** @brief Copy a text into a fixed array; NULL gives "". Too long is a bug of the schema: cut. */
void pay_store_read_chars(char *dst, size_t size, const struct pay_pg_result *result, size_t row,
                          size_t column);
/** @brief A text or bytes that outlive the result. */
struct pay_str pay_store_read_str(struct pay_arena *arena, const struct pay_pg_result *result,
                                  size_t row, size_t column);
struct pay_bytes pay_store_read_bytes(struct pay_arena *arena, const struct pay_pg_result *result,
                                      size_t row, size_t column);

#endif /* PAY_STORE_STATEMENT_H */
