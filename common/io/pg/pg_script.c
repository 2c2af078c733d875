/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/pg/pg.h"

#include "common/base/assert.h"
#include "common/io/pg/pg_internal.h"

#include <poll.h>

#include "common/base/banned.h"

static const char *const op = "pg script";

static enum pay_status gone(struct pay_pg *pg, bool risky, struct pay_err *err)
{
    char why[sizeof err->text];
    bool late = pg->conn != NULL && PQstatus(pg->conn) == CONNECTION_OK;

    return pay_pg_fail_lost(
        pg, op, 0, risky, late ? "no answer in time" : pay_pg_conn_text(pg->conn, why, sizeof why),
        err);
}

/* @return false when the connection or the time is over. */
static bool wait_result(struct pay_pg *pg, int64_t deadline_us)
{
    while (PQisBusy(pg->conn) == 1) {
        if (PQflush(pg->conn) < 0 ||
            !pay_pg_wait(pg->conn, PQflush(pg->conn) == 1 ? POLLIN | POLLOUT : POLLIN,
                         deadline_us) ||
            PQconsumeInput(pg->conn) != 1) {
            return false;
        }
    }
    return true;
}

static enum pay_status run_script(struct pay_pg *pg, struct pay_err *err)
{
    int64_t deadline_us = pay_pg_deadline(pg->options.answer_timeout_ms);
    enum pay_status status = PAY_OK;
    bool risky = !pg->in_transaction;

    for (;;) {
        if (!wait_result(pg, deadline_us)) {
            return gone(pg, risky, err);
        }
        PGresult *result = PQgetResult(pg->conn);
        if (result == NULL) {
            return PQstatus(pg->conn) == CONNECTION_OK ? status : gone(pg, risky, err);
        }
        if (PQresultStatus(result) == PGRES_FATAL_ERROR && status == PAY_OK) {
            status = pay_pg_fail_result(pg, result, op, 0, err);
        }
        PQclear(result);
    }
}

enum pay_status pay_pg_script(struct pay_pg *pg, const char *sql, struct pay_err *err)
{
    PAY_ASSERT(pg->queued == 0);
    if (!pay_pg_usable(pg) || PQexitPipelineMode(pg->conn) != 1 ||
        PQsendQuery(pg->conn, sql) != 1) {
        return gone(pg, false, err);
    }
    enum pay_status status = run_script(pg, err);
    if (!pay_pg_usable(pg)) {
        return status;
    }
    PGTransactionStatusType now = PQtransactionStatus(pg->conn);
    pg->in_transaction = now == PQTRANS_INTRANS || now == PQTRANS_INERROR;
    if (PQenterPipelineMode(pg->conn) != 1) {
        pay_pg_disconnect(
            pg); /* The script has been answered; only the next use needs a new session. */
    }
    return status;
}
