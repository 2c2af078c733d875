/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for people: cases, approvals. Reads only. */
#include <inttypes.h>
#include <stddef.h>

#include "common/base/arena.h"
#include "common/store/review.h"
#include "tools/payfactctl/ctl.h"
#include "tools/payfactctl/explain_render.h"

#include "common/base/banned.h"

static const char op[] = "review";

#define ARENA_BYTES_MAX ((size_t)16 << 20)

struct options {
    bool as_json;
};

static const struct pay_arg args[] = {
    {"--json", PAY_ARG_FLAG, offsetof(struct options, as_json), 0, 0, NULL, false, "print JSON"},
};

static const char *or_none(struct pay_str value)
{
    return value.ptr == NULL || value.len == 0 ? "-" : value.ptr;
}

static void print_case(const void *row, struct pay_buf *out)
{
    const struct pay_review_case *item = row;
    char at[28], refund[48] = "none";
    pay_explain_time(item->opened_at, at);
    if (item->proposed_refund_minor > 0) {
        pay_explain_money(item->proposed_refund_minor, item->currency, refund);
    }
    pay_buf_printf(out, "%s  %s  version %" PRId64 "  %s  proposed refund %s\n", at,
                   item->case_id.ptr, item->version, or_none(item->aggregate_id), refund);
}

static void print_request(const void *row, struct pay_buf *out)
{
    const struct pay_review_request *item = row;
    char at[28];
    pay_explain_time(item->expires_at, at);
    pay_buf_printf(out,
                   "%s  %s of %s  payment %s\n    sha256 %s\n    reason %s, asked by %s, %" PRId64
                   " of 2 approvals (%s), ends %s\n    evidence %s\n",
                   item->request_id.ptr, item->command_type.ptr, item->aggregate_id.ptr,
                   item->payment_id.ptr, item->sha256.ptr, or_none(item->reason_code),
                   item->requested_by.ptr, item->approvals, or_none(item->approved_by), at,
                   or_none(item->attachments));
}

struct listing {
    enum pay_status (*read)(struct pay_store *store, struct pay_arena *arena,
                            struct pay_explain_rows *ret_rows, struct pay_err *err);
    const struct pay_explain_spec *(*spec)(void);
    void (*print)(const void *row, struct pay_buf *out);
};

static void print_rows(const struct listing *listing, const struct pay_explain_rows *rows,
                       bool as_json, struct pay_buf *out)
{
    const struct pay_explain_spec *spec = listing->spec();
    pay_buf_add_c(out, as_json ? "[" : "");
    for (size_t i = 0; i < rows->count; i++) {
        const void *row = (const char *)rows->rows + i * spec->row_size;
        if (as_json) {
            pay_buf_add_c(out, i == 0 ? "" : ",");
            pay_explain_json_row(spec, row, out);
        } else {
            listing->print(row, out);
        }
    }
    pay_buf_add_c(out, as_json ? "]\n" : rows->count == 0 ? "nothing waits\n" : "");
}

static enum pay_ctl_exit run(struct pay_ctl *ctl, const struct listing *listing, bool as_json,
                             struct pay_err *err)
{
    struct pay_store *store = NULL;
    struct pay_explain_rows rows = {.count = 0};
    struct pay_arena *arena = pay_arena_new(ARENA_BYTES_MAX);
    enum pay_status status = arena == NULL
                                 ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                 : pay_ctl_store(ctl, "payfactctl review", true, &store, err);
    status = status != PAY_OK ? status : listing->read(store, arena, &rows, err);
    if (status == PAY_OK) {
        print_rows(listing, &rows, as_json, &ctl->out);
        if (rows.count == PAY_STORE_REVIEW_MAX) {
            pay_ctl_say("these are the first ones, there may be more");
        }
    }
    (void)pay_store_free(store); /* always NULL, as the next */
    (void)pay_arena_free(arena);
    return pay_ctl_exit_of(status);
}

static enum pay_ctl_exit run_cases(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    static const struct listing listing = {pay_store_review_cases, pay_review_case_spec,
                                           print_case};
    return run(ctl, &listing, ((const struct options *)given)->as_json, err);
}

static enum pay_ctl_exit run_approvals(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    static const struct listing listing = {pay_store_review_requests, pay_review_request_spec,
                                           print_request};
    return run(ctl, &listing, ((const struct options *)given)->as_json, err);
}

const struct pay_ctl_command pay_ctl_cases = {
    .name = "cases",
    .what = "cases that wait for a person",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run_cases,
};

const struct pay_ctl_command pay_ctl_approvals = {
    .name = "approvals",
    .what = "requests that wait for two people",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run_approvals,
};
