/* SPDX-License-Identifier: Apache-2.0 */
/* Money that moves back and forth, and what two people decide: each command signs one order. */
#include <stddef.h>

#include "tools/payfactctl/send.h"

#include "common/base/banned.h"

#define AT PAY_SEND_AT

/* clang-format off */
#define EVERY PAY_SEND_SIGNER, {"--payment", PAY_ARG_TEXT, AT(payment_id), 0, 0, "ID", true, "payment id"}
#define AMOUNT(required_, doc_) \
    {"--amount", PAY_ARG_INT, AT(amount_minor), (required_) ? 1 : 0, INT64_MAX, "MINOR", (required_), (doc_)}, \
    {"--currency", PAY_ARG_TEXT, AT(currency), 0, 0, "CCY", (required_), "ISO 4217"}
#define OWN_NUMBER \
    {"--number", PAY_ARG_TEXT, AT(idempotency_key), 0, 0, "TEXT", false, "the merchant's own number of it: the same one never twice"}
#define SUBJECT(doc_) {"--id", PAY_ARG_TEXT, AT(aggregate_id), 0, 0, "ID", true, (doc_)}
#define VERSION(doc_) {"--version", PAY_ARG_INT, AT(expected_version), 0, INT64_MAX, "N", false, (doc_)}
#define EVIDENCE \
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", true, "why, of the fixed list in docs/STATE_MACHINE.md"}, \
    {"--attachment", PAY_ARG_LIST, AT(attachments), 0, 0, "REF=SHA256", false, "evidence: its reference and the digest of its bytes; at least one"}
#define WORD \
    {"--request", PAY_ARG_TEXT, AT(request_id), 0, 0, "ID", true, "as \"approvals\" shows it"}, \
    {"--sha256", PAY_ARG_TEXT, AT(request_sha256), 0, 0, "HEX", true, "of the request's bytes, as \"approvals\" shows it"}
#define ROUTE \
    PAY_SEND_SIGNER, \
    {"--psp", PAY_ARG_TEXT, AT(psp), 0, 0, "NAME", true, "the PSP"}, \
    {"--account", PAY_ARG_TEXT, AT(psp_account), 0, 0, "ID", true, "account of accounts.json"}, \
    {"--method", PAY_ARG_TEXT, AT(method), 0, 0, "NAME", false, "one method; by default every one of the account"}, \
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", true, "why"}

static const struct pay_arg refund_args[] = {
    EVERY, AMOUNT(true, "in minor units: 2599 is 25.99 EUR"),
    {"--attempt", PAY_ARG_TEXT, AT(attempt_id), 0, 0, "ID", false, "whose money; by default the attempt that paid the order"},
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", false, "by default REQUESTED_BY_CALLER; the PSP may show it"},
    OWN_NUMBER,
};
static const struct pay_arg capture_args[] = {
    EVERY, AMOUNT(true, "in minor units: 2599 is 25.99 EUR"),
    {"--attempt", PAY_ARG_TEXT, AT(attempt_id), 0, 0, "ID", false, "by default the one that is authorized"},
    {"--partial", PAY_ARG_FLAG, AT(is_partial), 0, 0, NULL, false, "more is to be captured; without it the rest is released"},
    OWN_NUMBER,
};
static const struct pay_arg cancel_args[] = {
    EVERY,
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", false, "by default REQUESTED_BY_CALLER"},
};
static const struct pay_arg correct_args[] = {
    EVERY, SUBJECT("payment, attempt, capture, refund or dispute"),
    VERSION("of its row, as \"explain\" shows it; none for an order"),
    {"--from", PAY_ARG_TEXT, AT(from_status), 0, 0, "STATUS", true, "the status that it has now"},
    {"--to", PAY_ARG_TEXT, AT(to_status), 0, 0, "STATUS", true, "the status that it really has"},
    AMOUNT(false, "what was really received, in minor units"),
    {"--reference", PAY_ARG_TEXT, AT(provider_reference), 0, 0, "REF", false, "the PSP's own reference"},
    EVIDENCE,
};
static const struct pay_arg force_args[] = {
    EVERY, SUBJECT("attempt, capture or refund that is UNKNOWN"), VERSION("of its row, as \"explain\" shows it"),
    {"--outcome", PAY_ARG_TEXT, AT(to_status), 0, 0, "STATUS", true, "FAILED or SUCCEEDED"},
    {"--reference", PAY_ARG_TEXT, AT(provider_reference), 0, 0, "REF", false, "the PSP's own reference"},
    EVIDENCE,
};
static const struct pay_arg release_args[] = {
    EVERY, SUBJECT("capture or refund that holds it"), VERSION("of its row, as \"explain\" shows it"), EVIDENCE,
};
static const struct pay_arg override_args[] = {
    EVERY, SUBJECT("attempt that blocks the others"), VERSION("of its row, as \"explain\" shows it"), EVIDENCE,
};
static const struct pay_arg resolve_args[] = {
    EVERY, SUBJECT("case, as \"cases\" shows it"), VERSION("of the case, as \"cases\" shows it"), EVIDENCE,
};
static const struct pay_arg approve_args[] = { EVERY, WORD };
static const struct pay_arg decline_args[] = {
    EVERY, WORD,
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "CODE", true, "why not"},
};
static const struct pay_arg route_args[] = { ROUTE };
/* clang-format on */

static enum pay_ctl_exit send_route(struct pay_ctl *ctl, enum pay_command_type type,
                                    const struct pay_send_options *given, struct pay_err *err)
{
    struct pay_send_options options = *given;
    struct pay_buf key = pay_buf_make((size_t)2 * PAY_NAME_SIZE);
    pay_buf_printf(&key, "%s/%s", options.psp, options.psp_account);
    if (key.failed) {
        pay_buf_free(&key);
        (void)pay_err_set(err, PAY_REJECT, 0, "pause", "--psp or --account is too long");
        return PAY_CTL_USAGE;
    }
    options.payment_id = "";
    options.key = pay_buf_str(&key).ptr;
    const enum pay_ctl_exit code = pay_send(ctl, type, &options, err);
    pay_buf_free(&key);
    return code;
}

#define ORDER(name_, said_, type_, send_, args_, what_)                          \
    static enum pay_ctl_exit run_##name_(struct pay_ctl *ctl, const void *given, \
                                         struct pay_err *err)                    \
    {                                                                            \
        return send_(ctl, PAY_CMD_##type_, given, err);                          \
    }                                                                            \
    const struct pay_ctl_command pay_ctl_##name_ = {                             \
        .name = (said_),                                                         \
        .what = (what_),                                                         \
        .args = {(args_), sizeof(args_) / sizeof((args_)[0])},                   \
        .options_size = sizeof(struct pay_send_options),                         \
        .run = run_##name_,                                                      \
    }

ORDER(refund, "refund", REQUEST_REFUND, pay_send, refund_args, "pay back, all or a part");
ORDER(capture, "capture", CAPTURE, pay_send, capture_args,
      "take what was authorized, all or a part");
ORDER(cancel, "cancel", CANCEL_PAYMENT, pay_send, cancel_args,
      "cancel a payment that is not paid, void an authorization");
ORDER(correct, "correct", CORRECT_STATE, pay_send, correct_args,
      "ask two others to correct a state or an amount");
ORDER(force_close, "force-close", FORCE_CLOSE_UNKNOWN, pay_send, force_args,
      "ask two others to end what stays UNKNOWN");
ORDER(release, "release-reservation", RELEASE_RESERVATION, pay_send, release_args,
      "ask two others to release what a capture or refund holds");
ORDER(override, "override-block", OVERRIDE_BLOCK, pay_send, override_args,
      "ask two others to let a payment go on beside an attempt");
ORDER(resolve, "resolve-case", RESOLVE_CASE, pay_send, resolve_args,
      "close a case; one of money needs two others");
ORDER(approve, "approve", APPROVE, pay_send, approve_args, "say yes to a request of somebody else");
ORDER(decline, "decline", DECLINE, pay_send, decline_args, "say no to a request");
ORDER(pause_route, "pause-route", PAUSE_ROUTE, send_route, route_args,
      "no new attempts on an account or one of its methods");
ORDER(resume_route, "resume-route", RESUME_ROUTE, send_route, route_args, "take a pause back");
