/* SPDX-License-Identifier: Apache-2.0 */
/** @file pg_internal.h @brief What the files of this folder share; nobody else includes it. */
#ifndef PAY_IO_PG_PG_INTERNAL_H
#define PAY_IO_PG_PG_INTERNAL_H

#include "common/base/buf.h"
#include "common/io/pg/pg.h"

#include <libpq-fe.h>

#define PAY_PG_EPOCH_US INT64_C(946684800000000) /* 2000-01-01 in microseconds since 1970. */
#define PAY_PG_EPOCH_DAYS 10957
#define PAY_PG_ARRAY_HEADER_BYTES 20
#define PAY_PG_TID_BYTES 6
#define PAY_PG_ARRAY_EMPTY_BYTES 12

/* Object ids of the built-in types; they are part of the wire protocol's contract. */
struct pay_pg_oids {
    Oid element;
    Oid array;
};
extern const struct pay_pg_oids pay_pg_oids[PAY_PG_TYPE_COUNT];

struct pay_pg_param {
    Oid oid;
    bool is_null;
    size_t offset; /* In values: it may move while it grows. */
    size_t len;
};

struct pay_pg_params {
    struct pay_buf values;
    struct pay_pg_param items[PAY_PG_PARAMS_MAX];
    size_t count;
    bool in_array;
    enum pay_pg_type element;
    size_t elements;
    bool has_null;
};

enum pay_pg_prepared { PAY_PG_PREPARED_NO, PAY_PG_PREPARED_SENT, PAY_PG_PREPARED_YES };

struct pay_pg_slot {
    const struct pay_pg_stmt *stmt;
    enum pay_pg_prepared prepared;
};

/* One answer to come: of a Parse or of an execution. */
struct pay_pg_entry {
    struct pay_pg_slot *slot;
    bool is_prepare;
    size_t index; /* Of the statement in the run. */
};

struct pay_pg {
    PGconn *conn;
    struct pay_pg_options options; /* Text is owned. */
    struct pay_pg_slot slots[PAY_PG_STMTS_MAX];
    struct pay_pg_entry entries[2 * PAY_PG_QUEUE_MAX];
    size_t entry_count;
    size_t queued;
    bool sent;
    bool has_begin;      /* In this run. */
    bool has_commit;     /* In this run. */
    bool has_write;      /* A statement of this run is not read_only. */
    bool in_transaction; /* As the server said at the end of the last run. */
    bool warned;         /* The server sent a WARNING 01000 during this run. */
    bool no_transaction; /* The server warned 25P01: COMMIT without BEGIN. */
    struct pay_pg_failure failure;
    char message[512];
};

extern const struct pay_pg_stmt pay_pg_stmt_begin;
extern const struct pay_pg_stmt pay_pg_stmt_commit;
extern const struct pay_pg_stmt pay_pg_stmt_rollback;

/* When (monotonic microseconds) an answer must be there; INT64_MAX: never. */
int64_t pay_pg_deadline(int timeout_ms);
/* Wait for the socket. @return false at the deadline. */
bool pay_pg_wait(PGconn *conn, short events, int64_t deadline_us);
/* Remember a result's error and turn it into a class. */
enum pay_status pay_pg_fail_result(struct pay_pg *pg, const PGresult *result, const char *stmt,
                                   size_t index, struct pay_err *err);
/* No answer will come: drops the connection. risky: what was sent may have been committed. */
enum pay_status pay_pg_fail_lost(struct pay_pg *pg, const char *stmt, size_t index, bool risky,
                                 const char *why, struct pay_err *err);
/* One line of the library's own text about the connection. */
const char *pay_pg_conn_text(const PGconn *conn, char *dst, size_t dst_size);

/* A struct pay_pg_result is a PGresult under a name that other folders may know. */
static inline struct pay_pg_result *pay_pg_wrap(PGresult *result)
{
    return (struct pay_pg_result *)result;
}

static inline PGresult *pay_pg_raw(struct pay_pg_result *result)
{
    return (PGresult *)result;
}

static inline const PGresult *pay_pg_raw_const(const struct pay_pg_result *result)
{
    return (const PGresult *)result;
}

#endif /* PAY_IO_PG_PG_INTERNAL_H */
