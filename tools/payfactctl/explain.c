/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "common/core/id.h"
#include "tools/payfactctl/ctl.h"
#include "tools/payfactctl/explain_render.h"

#include "common/base/banned.h"

#define ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)

static const char op[] = "explain";

struct options {
    const char *payment_id;
    const char *merchant;
    const char *order_no;
    const char *reference;
    bool as_json;
};

static const struct pay_arg args[] = {
    {"PAYMENT_ID", PAY_ARG_OPERAND, offsetof(struct options, payment_id), 0, 0, NULL, false,
     "payment id, or any id that begins with one (attempt, job)"},
    {"--merchant-order", PAY_ARG_TEXT, offsetof(struct options, merchant), 0, 0, "MERCHANT NO",
     false, "the merchant's own order number instead"},
    {"--psp-ref", PAY_ARG_TEXT, offsetof(struct options, reference), 0, 0, "REF", false,
     "any name that a PSP has for it instead"},
    {"--json", PAY_ARG_FLAG, offsetof(struct options, as_json), 0, 0, NULL, false, "print JSON"},
};

/* ---- which payment ---- */

static enum pay_status found_one(const struct pay_explain_found *found, struct pay_ctl *ctl,
                                 char ret_id[PAY_PAYMENT_ID_SIZE], struct pay_err *err)
{
    if (found->count > 1) {
        for (size_t i = 0; i < found->count; i++) {
            pay_buf_printf(&ctl->more, "  %s\n", found->payment_ids[i]);
        }
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "the reference is of %s payments: ask by payment id",
                           found->has_more ? "too many" : "several");
    }
    ret_id[0] = '\0';
    if (found->count == 1) {
        memcpy(ret_id, found->payment_ids[0], PAY_PAYMENT_ID_SIZE);
    }
    return PAY_OK;
}

/* A payment id, or what begins with one: people copy what they have. */
static bool is_our_id(const char *text, char ret_id[PAY_PAYMENT_ID_SIZE])
{
    const struct pay_str id = {text, PAY_PAYMENT_ID_SIZE - 1};
    return strlen(text) >= id.len && pay_id_is_payment(id) &&
           pay_str_copy(ret_id, PAY_PAYMENT_ID_SIZE, id);
}

/* @param ret_id "" when nothing has that name. */
static enum pay_status find(struct pay_store *store, const struct options *options,
                            struct pay_ctl *ctl, char ret_id[PAY_PAYMENT_ID_SIZE],
                            struct pay_err *err)
{
    struct pay_explain_found found;
    enum pay_status status = PAY_OK;
    if (options->merchant != NULL) {
        status =
            pay_store_explain_by_order_no(store, options->merchant, options->order_no, &found, err);
    } else if (options->reference != NULL) {
        status = pay_store_explain_by_reference(store, options->reference, &found, err);
    } else {
        return is_our_id(options->payment_id, ret_id)
                   ? PAY_OK
                   : pay_err_set(err, PAY_FATAL, 0, op,
                                 "\"%.60s\" is not a payment id: see --psp-ref, --merchant-order",
                                 options->payment_id);
    }
    if (status == PAY_OK) {
        status = found_one(&found, ctl, ret_id, err);
    }
    /* Our request number is a name that the PSP has for it, too. */
    if (status == PAY_OK && ret_id[0] == '\0' && options->reference != NULL) {
        (void)is_our_id(options->reference, ret_id); /* "" stays when it is none */
    }
    return status;
}

/* "--merchant-order M NO": NO is read as the operand. Exactly one way to name the payment. */
static bool fits(struct options *options)
{
    if (options->merchant != NULL) {
        options->order_no = options->payment_id;
        options->payment_id = NULL;
        return options->order_no != NULL && options->reference == NULL;
    }
    return (options->payment_id != NULL) != (options->reference != NULL);
}

/* ---- say ---- */

static enum pay_status look(struct pay_ctl *ctl, const struct options *options,
                            struct pay_store *store, struct pay_arena *arena, bool *ret_known,
                            struct pay_err *err)
{
    char payment_id[PAY_PAYMENT_ID_SIZE] = "";
    struct pay_explain explain;
    enum pay_status status = find(store, options, ctl, payment_id, err);
    *ret_known = false;
    if (status != PAY_OK || payment_id[0] == '\0') {
        return status;
    }
    status = pay_store_explain(store, payment_id, arena, &explain, err);
    if (status == PAY_OK && pay_explain_is_known(&explain)) {
        *ret_known = true;
        options->as_json ? pay_explain_json(&explain, &ctl->out)
                         : pay_explain_text(&explain, &ctl->out);
    }
    return status;
}

static enum pay_status connect_and_look(struct pay_ctl *ctl, const struct options *options,
                                        bool *ret_known, struct pay_err *err)
{
    struct pay_store *store = NULL;
    struct pay_arena *arena = pay_arena_new(ARENA_BYTES_MAX);
    enum pay_status status = arena == NULL
                                 ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                 : pay_ctl_store(ctl, "payfactctl explain", true, &store, err);
    if (status == PAY_OK) {
        status = look(ctl, options, store, arena, ret_known, err);
    }
    (void)pay_store_free(store); /* always NULL, as the next */
    (void)pay_arena_free(arena);
    return status;
}

static enum pay_ctl_exit run(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    struct options options = *(const struct options *)given;
    bool is_known = false;
    if (!fits(&options)) {
        (void)pay_err_set(err, PAY_REJECT, 0, op,
                          "give a payment id, or --merchant-order MERCHANT NO, or --psp-ref REF");
        return PAY_CTL_USAGE;
    }
    const enum pay_status status = connect_and_look(ctl, &options, &is_known, err);
    if (status == PAY_OK && !is_known) {
        (void)pay_err_set(err, PAY_REJECT, 0, op, "nothing is known by that name");
        return PAY_CTL_NOT_FOUND;
    }
    return pay_ctl_exit_of(status);
}

const struct pay_ctl_command pay_ctl_explain = {
    .name = "explain",
    .what = "say why a payment is in its state, and who acts next",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run,
};
