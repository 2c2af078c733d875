/* SPDX-License-Identifier: Apache-2.0 */
#include "common/store/strict.h"

#include "common/store/statement.h"

#include "common/base/banned.h"

static const struct pay_pg_stmt read_stmt = {
    .name = "strict_read",
    .sql = "SELECT psp, psp_account, amount_minor, currency FROM payfact.payment_attempt"
           " WHERE merchant_request_no = $1",
    .read_only = true,
};

enum pay_status pay_store_strict_read(struct pay_store *store, struct pay_str request_no,
                                      struct pay_store_strict *ret_attempt, struct pay_err *err)
{
    pay_pg_add_text(pay_store_params(store), request_no);
    const enum pay_status status = pay_store_exec(store, &read_stmt, err);
    if (status != PAY_OK) {
        return status;
    }
    const struct pay_pg_result *rows = pay_store_result(store, 0);
    *ret_attempt = (struct pay_store_strict){.found = pay_pg_rows(rows) == 1};
    if (ret_attempt->found) {
        pay_store_read_chars(ret_attempt->psp, PAY_NAME_SIZE, rows, 0, 0);
        pay_store_read_chars(ret_attempt->psp_account, PAY_NAME_SIZE, rows, 0, 1);
        ret_attempt->amount.amount_minor = pay_pg_int(rows, 0, 2);
        pay_store_read_chars(ret_attempt->amount.currency, PAY_CURRENCY_SIZE, rows, 0, 3);
    }
    pay_store_results_free(store);
    return PAY_OK;
}
