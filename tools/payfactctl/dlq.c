/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/dlq.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "tools/payfactctl/explain_render.h"
#include "tools/payfactctl/send.h"

#include "common/base/banned.h"

static const char op[] = "dlq";

#define SECONDS_MAX (INT64_C(366) * 86400)

/* ---- list ---- */

struct list_options {
    bool of_topic, as_json;
    int64_t since_s;
};

#define AT(member_) offsetof(struct list_options, member_)

static const struct pay_arg list_args[] = {
    {"--topic", PAY_ARG_FLAG, AT(of_topic), 0, 0, NULL, false,
     "the letters of the topic dlq instead: commands, notifications and jobs are only there"},
    {"--since", PAY_ARG_INT, AT(since_s), 0, SECONDS_MAX, "S", false,
     "with --topic: only those of the last seconds"},
    {"--json", PAY_ARG_FLAG, AT(as_json), 0, 0, NULL, false, "print JSON"},
};

static const struct pay_dead_thing *thing_at(const struct pay_explain_rows *rows, size_t index)
{
    return (const struct pay_dead_thing *)rows->rows + index;
}

static void text(struct pay_str value, struct pay_buf *out)
{
    pay_buf_add_str(out, value.ptr == NULL || value.len == 0 ? PAY_STR("-") : value);
}

static void print_line(const struct pay_dead_thing *thing, struct pay_buf *out)
{
    char at[28];
    pay_explain_time(thing->last_at, at);
    pay_buf_printf(out, "%s  ", at);
    text(thing->what, out);
    pay_buf_add_c(out, "  ");
    text(thing->id, out);
    pay_buf_add_c(out, "  ");
    text(thing->reason, out);
    pay_buf_add_c(out, "  payment ");
    text(thing->payment_id, out);
    if (thing->held > 0) {
        pay_buf_printf(out, "  holds %" PRId64 " later rows", thing->held);
    }
    pay_buf_add_char(out, '\n');
}

static void print_thing(const struct list_options *options, const struct pay_dead_thing *thing,
                        bool is_first, struct pay_buf *out)
{
    if (!options->as_json) {
        print_line(thing, out);
        return;
    }
    pay_buf_add_c(out, is_first ? "" : ",");
    pay_explain_json_row(pay_dead_spec(), thing, out);
}

static void print_things(const struct list_options *options, const struct pay_explain_rows rows[2],
                         struct pay_buf *out)
{
    const size_t count = rows[0].count + rows[1].count;
    pay_buf_add_c(out, options->as_json ? "[" : "");
    for (size_t i = 0; i < count; i++) {
        const bool is_input = i < rows[0].count;
        print_thing(options,
                    is_input ? thing_at(&rows[0], i) : thing_at(&rows[1], i - rows[0].count),
                    i == 0, out);
    }
    if (options->as_json) {
        pay_buf_add_c(out, "]\n");
    } else if (count == 0) {
        pay_buf_add_c(out, "nothing waits\n");
    }
}

static enum pay_status list_stored(struct pay_ctl *ctl, const struct list_options *options,
                                   struct pay_err *err)
{
    struct pay_store *store = NULL;
    struct pay_explain_rows rows[2] = {{.count = 0}, {.count = 0}};
    struct pay_arena *arena = pay_arena_new(PAY_DLQ_ARENA_BYTES_MAX);
    enum pay_status status = arena == NULL
                                 ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                 : pay_ctl_store(ctl, "payfactctl dlq", true, &store, err);
    if (status == PAY_OK) {
        status = pay_store_dead_list(store, arena, rows, err);
    }
    if (status == PAY_OK) {
        print_things(options, rows, &ctl->out);
        if (rows[0].count == PAY_STORE_DEAD_MAX || rows[1].count == PAY_STORE_DEAD_MAX) {
            pay_ctl_say("these are the oldest ones, there may be more");
        }
    }
    (void)pay_store_free(store); /* always NULL, as the next */
    (void)pay_arena_free(arena);
    return status;
}

struct printing {
    struct pay_buf *out;
    bool as_json;
    size_t count;
};

static bool print_letter(void *ctx, const struct pay_dead_letter *letter)
{
    struct printing *printing = ctx;
    struct pay_buf *out = printing->out;
    char at[28];
    pay_explain_time(letter->last_failed_at_us, at);
    if (printing->as_json) {
        pay_buf_printf(out, "%s{\"id\":", printing->count == 0 ? "" : ",");
        pay_buf_add_json_str(out, letter->dead_letter_id);
        pay_buf_printf(out, ",\"reason\":\"%s\",\"text\":", pay_dead_reason_name(letter->reason));
        pay_buf_add_json_str(out, letter->text);
        pay_buf_add_c(out, ",\"service\":");
        pay_buf_add_json_str(out, letter->service);
        pay_buf_printf(out, ",\"last_failed_at\":\"%s\",\"tries\":%d}", at, letter->tries);
    } else {
        pay_buf_printf(out, "%s  ", at);
        text(letter->dead_letter_id, out);
        pay_buf_printf(out, "  %s  ", pay_dead_reason_name(letter->reason));
        text(letter->text, out);
        pay_buf_add_char(out, '\n');
    }
    printing->count++;
    return !out->failed;
}

static enum pay_status list_topic(struct pay_ctl *ctl, const struct list_options *options,
                                  struct pay_err *err)
{
    struct printing printing = {.out = &ctl->out, .as_json = options->as_json};
    struct pay_dlq_reading reading = {
        .since_s = options->since_s, .on_letter = print_letter, .ctx = &printing};
    pay_buf_add_c(&ctl->out, options->as_json ? "[" : "");
    const enum pay_status status = pay_dlq_read(ctl, &reading, err);
    pay_buf_add_c(&ctl->out, options->as_json ? "]\n" : "");
    if (status == PAY_OK && reading.unreadable > 0) {
        pay_ctl_say("some records of the topic are no letter that this version can read");
    }
    if (status == PAY_OK && ctl->out.failed) {
        return pay_err_set(err, PAY_REJECT, 0, op, "too many letters: give --since");
    }
    return status;
}

static enum pay_ctl_exit run_list(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    const struct list_options *options = given;
    return pay_ctl_exit_of(options->of_topic ? list_topic(ctl, options, err)
                                             : list_stored(ctl, options, err));
}

/* ---- show ---- */

struct show_options {
    const char *id;
    bool as_json;
};

static const struct pay_arg show_args[] = {
    {"ID", PAY_ARG_OPERAND, offsetof(struct show_options, id), 0, 0, NULL, true,
     "as list prints it; psp/account/key of any stored input"},
    {"--json", PAY_ARG_FLAG, offsetof(struct show_options, as_json), 0, 0, NULL, false,
     "print JSON"},
};

static const char *what_to_do(const struct pay_dead_thing *thing)
{
    if (pay_str_eq_c(thing->what, "JOB")) {
        return "mend what Kafka refused, then: dlq replay";
    }
    if (pay_str_eq_c(thing->what, "EVENT")) {
        return "mend what Kafka refused, then: dlq replay; or give it up: dlq discard";
    }
    if (pay_str_eq_c(thing->status, "DECIDED")) {
        return "nothing: it is decided";
    }
    if (pay_str_eq_c(thing->status, "ORPHAN")) {
        return "nothing: it is decided again by itself until its budget is spent";
    }
    if (pay_str_eq_c(thing->kind, "REFUSED_NOTIFICATION")) {
        return "nothing: it is kept as evidence and never decided";
    }
    return "mend the cause, then: dlq replay; or close its case: dlq discard";
}

static void print_field(const struct pay_explain_field *field, const struct pay_dead_thing *thing,
                        struct pay_buf *out)
{
    char at[28];
    struct pay_str value;
    int64_t count = 0;
    const char *from = (const char *)thing + field->offset;
    if (field->kind == PAY_EXPLAIN_TEXT) {
        memcpy(&value, from, sizeof value);
        if (value.ptr != NULL) {
            pay_buf_printf(out, "%-14s ", field->name);
            text(value, out);
            pay_buf_add_char(out, '\n');
        }
        return;
    }
    memcpy(&count, from, sizeof count);
    if (field->kind == PAY_EXPLAIN_TIME) {
        pay_explain_time(count, at);
        pay_buf_printf(out, "%-14s %s\n", field->name, at);
    } else if (count != 0) {
        pay_buf_printf(out, "%-14s %" PRId64 "\n", field->name, count);
    }
}

static enum pay_ctl_exit not_found(const char *id, struct pay_err *err)
{
    (void)pay_err_set(err, PAY_REJECT, 0, op, "\"%.100s\" names nothing that is stored", id);
    return PAY_CTL_NOT_FOUND;
}

static enum pay_ctl_exit run_show(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    const struct show_options *options = given;
    const struct pay_dead_thing *thing = NULL;
    struct pay_arena *arena = pay_arena_new(PAY_DLQ_ARENA_BYTES_MAX);
    const enum pay_status status = arena == NULL
                                       ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                       : pay_dlq_find(ctl, options->id, arena, &thing, err);
    if (thing != NULL && options->as_json) {
        pay_explain_json_row(pay_dead_spec(), thing, &ctl->out);
        pay_buf_add_char(&ctl->out, '\n');
    } else if (thing != NULL) {
        for (size_t i = 0; i < pay_dead_spec()->field_count; i++) {
            print_field(&pay_dead_spec()->fields[i], thing, &ctl->out);
        }
        pay_buf_printf(&ctl->out, "%-14s %s\n", "to do", what_to_do(thing));
    }
    (void)pay_arena_free(arena); /* always NULL */
    return status != PAY_OK ? pay_ctl_exit_of(status)
           : thing == NULL  ? not_found(options->id, err)
                            : PAY_CTL_OK;
}

/* ---- replay, discard ---- */

struct act_options {
    struct pay_send_options send;
    const char *id;
};

#define SEND(member_) offsetof(struct act_options, send.member_)

/* clang-format off */
#define ACT(reason_is_required_, reason_doc_) \
    {"ID", PAY_ARG_OPERAND, offsetof(struct act_options, id), 0, 0, NULL, true, "as list prints it"}, \
    {"--caller", PAY_ARG_TEXT, SEND(caller), 0, 0, "ID", true, "principal of accounts.json that signs"}, \
    {"--key", PAY_ARG_TEXT, SEND(key_id), 0, 0, "ID", true, "id of its key"}, \
    {"--key-file", PAY_ARG_TEXT, SEND(key_file), 0, 0, "FILE", true, "its private key (PEM)"}, \
    {"--merchant", PAY_ARG_TEXT, SEND(merchant), 0, 0, "ID", true, \
     "merchant of the payment or of the PSP account"}, \
    {"--reason", PAY_ARG_TEXT, SEND(reason), 0, 0, "CODE", (reason_is_required_), (reason_doc_)}, \
    {"--command-id", PAY_ARG_TEXT, SEND(command_id), 0, 0, "ID", false, \
     "the caller's idempotency key; by default a new one"}, \
    {"--wait-answer", PAY_ARG_INT, SEND(wait_s), 0, 600, "S", false, \
     "wait so long for the decision, as PostgreSQL has it"}, \
    {"--json", PAY_ARG_FLAG, SEND(as_json), 0, 0, NULL, false, "print JSON"}

static const struct pay_arg replay_args[] = {ACT(false, "by default CAUSE_MENDED")};
static const struct pay_arg discard_args[] = {ACT(true, "why it is of no use")};
/* clang-format on */

/* @return PAY_CMD_COUNT: nothing can be done, @p err says why. */
static enum pay_command_type replay_of(const struct pay_dead_thing *thing, struct pay_err *err)
{
    if (!pay_str_eq_c(thing->what, "INPUT")) {
        return PAY_CMD_REPLAY_EVENT;
    }
    if (pay_str_eq_c(thing->status, "DECIDED") ||
        pay_str_eq_c(thing->kind, "REFUSED_NOTIFICATION")) {
        (void)pay_err_set(err, PAY_REJECT, 0, op, "%s", what_to_do(thing));
        return PAY_CMD_COUNT;
    }
    return PAY_CMD_REPLAY_INPUT;
}

static enum pay_command_type discard_of(const struct pay_dead_thing *thing, struct pay_err *err)
{
    if (pay_str_eq_c(thing->what, "EVENT")) {
        return PAY_CMD_DISCARD_EVENT;
    }
    if (pay_str_eq_c(thing->what, "INPUT") && pay_str_eq_c(thing->case_status, "OPEN")) {
        return PAY_CMD_RESOLVE_CASE;
    }
    (void)pay_err_set(err, PAY_REJECT, 0, op, "%s",
                      pay_str_eq_c(thing->what, "JOB")
                          ? "a job is not withheld: replay it, and past its time it is not sent"
                          : "it has no open case");
    return PAY_CMD_COUNT;
}

/* An input that names its payment is about it; one that does not goes by its own name. */
static void fill(const struct pay_dead_thing *thing, enum pay_command_type type,
                 struct pay_send_options *send)
{
    const bool has_payment =
        thing->payment_id.ptr != NULL && thing->payment_id.len > 0 && type != PAY_CMD_RESOLVE_CASE;
    send->payment_id = has_payment ? thing->payment_id.ptr : "";
    send->key = thing->id.ptr;
    send->psp = thing->psp.ptr;
    send->psp_account = thing->psp_account.ptr;
    send->transport_key = thing->transport_key.ptr;
    send->event_id = thing->id.ptr;
    send->case_id = thing->id.ptr;
    send->case_version = thing->case_version;
    if (type == PAY_CMD_REPLAY_INPUT) {
        send->event_id = NULL;
    }
}

static enum pay_ctl_exit act(struct pay_ctl *ctl, const void *given,
                             enum pay_command_type (*type_of)(const struct pay_dead_thing *,
                                                              struct pay_err *),
                             struct pay_err *err)
{
    struct act_options options = *(const struct act_options *)given;
    const struct pay_dead_thing *thing = NULL;
    struct pay_arena *arena = pay_arena_new(PAY_DLQ_ARENA_BYTES_MAX);
    const enum pay_status status = arena == NULL
                                       ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                       : pay_dlq_find(ctl, options.id, arena, &thing, err);
    enum pay_ctl_exit code = pay_ctl_exit_of(status);
    if (status == PAY_OK && thing == NULL) {
        code = not_found(options.id, err);
    } else if (status == PAY_OK) {
        const enum pay_command_type type = type_of(thing, err);
        if (options.send.reason == NULL) {
            options.send.reason = "CAUSE_MENDED";
        }
        code = PAY_CTL_REFUSED;
        if (type != PAY_CMD_COUNT) {
            fill(thing, type, &options.send);
            code = pay_send(ctl, type, &options.send, err);
        }
    }
    (void)pay_arena_free(arena); /* always NULL */
    return code;
}

static enum pay_ctl_exit run_replay(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    return act(ctl, given, replay_of, err);
}

static enum pay_ctl_exit run_discard(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    return act(ctl, given, discard_of, err);
}

#define COMMAND(name_, what_, options_)                                       \
    const struct pay_ctl_command pay_ctl_dlq_##name_ = {                      \
        .name = "dlq " #name_,                                                \
        .what = (what_),                                                      \
        .args = {name_##_args, sizeof name_##_args / sizeof(struct pay_arg)}, \
        .options_size = sizeof(struct options_),                              \
        .run = run_##name_,                                                   \
    }

COMMAND(list, "what was given up and waits for a person", list_options);
COMMAND(show, "say what is known of one, and what to do", show_options);
COMMAND(replay, "decide an input, publish an event or send a job again", act_options);
COMMAND(discard, "withhold an event, or close an input's case", act_options);
