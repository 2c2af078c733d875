/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public topics' schemas and a registry: "<topic>-value", FULL_TRANSITIVE, every version that
 * this release knows, oldest first. Services register nothing: when a schema becomes part of the
 * contract is a decision of the rollout (events before it, commands after it).
 */
#include <stddef.h>
#include <string.h>

#include "common/contracts/released.h"
#include "common/contracts/topics.h"
#include "common/registry/client.h"
#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"

#define TIMEOUT_MS 10000

static const char op[] = "schemas";

struct options {
    const char *topic; /* Without prefix; NULL: all public ones. */
};

static const struct pay_arg args[] = {
    {"--topic", PAY_ARG_TEXT, offsetof(struct options, topic), 0, 0, "NAME", false,
     "only events, commands or notifications; by default all three"},
};

/* One subject at hand. */
struct subject {
    struct pay_ctl *ctl;
    struct pay_registry *registry;
    enum pay_record record;
    char name[PAY_REGISTRY_SUBJECT_MAX];
    struct pay_released released[PAY_RELEASED_MAX];
    size_t released_count;
    bool has[PAY_RELEASED_MAX]; /* The registry has a version with that fingerprint. */
    bool is_full_transitive;
};

/* "3f2a..." is how single-object encoding and the logs name a schema. */
static void say(struct subject *subject, uint64_t fingerprint, const char *what)
{
    pay_buf_printf(&subject->ctl->out, "%s: schema %016llx %s\n", subject->name,
                   (unsigned long long)fingerprint, what);
}

/* ---- what is there ---- */

static enum pay_status mark(struct subject *subject, int number, struct pay_err *err)
{
    struct pay_err unread = {0};
    struct pay_buf text = pay_buf_make(PAY_REGISTRY_SCHEMA_BYTES_MAX);
    uint32_t id = 0;
    uint64_t fingerprint = 0;
    const enum pay_status status =
        pay_registry_version(subject->registry, subject->name, number, &id, &text, err);
    if (status == PAY_OK && pay_schema_text_fingerprint(subject->record, pay_buf_str(&text),
                                                        &fingerprint, &unread) == PAY_OK) {
        for (size_t i = 0; i < subject->released_count; i++) {
            subject->has[i] = subject->has[i] || subject->released[i].fingerprint == fingerprint;
        }
    }
    pay_buf_free(&text);
    return status;
}

static bool is_absent(enum pay_status status, const struct pay_err *err)
{
    return status == PAY_REJECT && err->code == PAY_REGISTRY_NOT_FOUND;
}

static enum pay_status look(struct subject *subject, struct pay_err *err)
{
    char level[32] = "";
    struct pay_registry_versions versions = {.count = 0};
    subject->released_count = pay_released(subject->record, subject->released);
    memset(subject->has, 0, sizeof subject->has);
    enum pay_status status =
        pay_registry_compatibility(subject->registry, subject->name, level, err);
    if (status == PAY_OK || is_absent(status, err)) {
        status = pay_registry_versions(subject->registry, subject->name, &versions, err);
    }
    if (is_absent(status, err)) {
        status = PAY_OK;
    }
    for (size_t i = 0; status == PAY_OK && i < versions.count; i++) {
        status = mark(subject, versions.numbers[i], err);
    }
    subject->is_full_transitive = strcmp(level, PAY_REGISTRY_COMPATIBILITY) == 0;
    return status;
}

/* ---- compare ---- */

static enum pay_status compare_one(struct subject *subject, size_t at, size_t *differences,
                                   struct pay_err *err)
{
    const struct pay_released *released = &subject->released[at];
    bool is_compatible = false;
    if (subject->has[at]) {
        return PAY_OK;
    }
    const enum pay_status status = pay_registry_is_compatible(subject->registry, subject->name,
                                                              released->json, &is_compatible, err);
    if (status == PAY_OK) {
        say(subject, released->fingerprint,
            is_compatible ? "is not registered" : "is not compatible with what is registered");
        (*differences)++;
    }
    return status;
}

static enum pay_status compare(struct subject *subject, size_t *differences, struct pay_err *err)
{
    enum pay_status status = look(subject, err);
    if (status == PAY_OK && !subject->is_full_transitive) {
        pay_buf_printf(&subject->ctl->out, "%s: compatibility is not %s\n", subject->name,
                       PAY_REGISTRY_COMPATIBILITY);
        (*differences)++;
    }
    for (size_t i = 0; status == PAY_OK && i < subject->released_count; i++) {
        status = compare_one(subject, i, differences, err);
    }
    return status;
}

/* ---- register ---- */

static enum pay_status add(struct subject *subject, size_t at, struct pay_err *err)
{
    const struct pay_released *released = &subject->released[at];
    uint32_t id = 0;
    const enum pay_status status =
        pay_registry_register(subject->registry, subject->name, released->json, &id, err);
    if (status == PAY_OK) {
        pay_buf_printf(&subject->ctl->out, "%s: schema %016llx has id %u\n", subject->name,
                       (unsigned long long)released->fingerprint, (unsigned)id);
    } else if (status == PAY_REJECT && err->code == PAY_REGISTRY_INCOMPATIBLE) {
        say(subject, released->fingerprint, "is not compatible with what is registered");
    }
    return status;
}

/* The level first: a registry's own default may be none at all. */
static enum pay_status enter(struct subject *subject, size_t *differences, struct pay_err *err)
{
    *differences = 0; /* What differs is changed. */
    enum pay_status status = look(subject, err);
    if (status == PAY_OK && !subject->is_full_transitive) {
        status = pay_registry_set_compatibility(subject->registry, subject->name,
                                                PAY_REGISTRY_COMPATIBILITY, err);
        pay_buf_printf(&subject->ctl->out, "%s: compatibility %s\n", subject->name,
                       status == PAY_OK ? "is now " PAY_REGISTRY_COMPATIBILITY : "was not set");
    }
    for (size_t i = 0; status == PAY_OK && i < subject->released_count; i++) {
        status = subject->has[i] ? PAY_OK : add(subject, i, err);
    }
    return status;
}

/* ---- all subjects ---- */

typedef enum pay_status visit_fn(struct subject *subject, size_t *differences, struct pay_err *err);

static enum pay_status open_registry(const struct pay_ctl *ctl, struct pay_registry **ret_registry,
                                     struct pay_err *err)
{
    const struct pay_ctl_settings *settings = &ctl->settings;
    if (settings->registry_url[0] == '\0') {
        return pay_err_set(err, PAY_FATAL, 0, op, "PAYFACT_REGISTRY_URL is not set");
    }
    const struct pay_registry_options options = {
        .url = settings->registry_url,
        .user = settings->registry_user,
        .password_file = settings->registry_password_file,
        .token_file = settings->registry_token_file,
        .ca_file = settings->registry_ca_file,
        .timeout_ms = TIMEOUT_MS,
    };
    return pay_registry_new(&options, ret_registry, err);
}

static enum pay_status visit(struct subject *subject, enum pay_topic topic, visit_fn *each,
                             size_t *differences, struct pay_err *err)
{
    char name[PAY_TOPIC_NAME_SIZE];
    const char *prefix = subject->ctl->settings.topic_prefix;
    if (!pay_topic_name(name, topic, prefix) || !pay_registry_subject(subject->name, name)) {
        return pay_err_set(err, PAY_FATAL, 0, op,
                           "PAYFACT_TOPIC_PREFIX \"%.60s\" does not make topic names", prefix);
    }
    subject->record = pay_topic_spec(topic)->record;
    return each(subject, differences, err);
}

static enum pay_status visit_all(struct pay_ctl *ctl, const char *only, visit_fn *each,
                                 size_t *differences, struct pay_err *err)
{
    struct subject subject = {.ctl = ctl};
    size_t visited = 0;
    *differences = 0;
    enum pay_status status = open_registry(ctl, &subject.registry, err);
    for (int i = 0; status == PAY_OK && i < PAY_TOPIC_COUNT; i++) {
        const struct pay_topic_spec *spec = pay_topic_spec((enum pay_topic)i);
        if (spec->is_public && (only == NULL || strcmp(only, spec->name) == 0)) {
            status = visit(&subject, (enum pay_topic)i, each, differences, err);
            visited++;
        }
    }
    subject.registry = pay_registry_free(subject.registry);
    return status == PAY_OK && visited == 0
               ? pay_err_set(err, PAY_FATAL, 0, op, "\"%.40s\" is not a public topic", only)
               : status;
}

enum pay_status pay_ctl_schemas_compare(struct pay_ctl *ctl, size_t *ret_differences,
                                        struct pay_err *err)
{
    return visit_all(ctl, NULL, compare, ret_differences, err);
}

static enum pay_ctl_exit run_check(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    const struct options *options = given;
    size_t differences = 0;
    enum pay_status status = visit_all(ctl, options->topic, compare, &differences, err);
    if (status == PAY_OK && differences > 0) {
        status = pay_err_set(err, PAY_REJECT, 0, op,
                             "the registry is not as it should be, see the list");
    }
    return pay_ctl_exit_of(status);
}

static enum pay_ctl_exit run_register(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    const struct options *options = given;
    size_t differences = 0;
    const enum pay_status status = visit_all(ctl, options->topic, enter, &differences, err);
    if (status == PAY_OK && ctl->out.len == 0) {
        pay_buf_add_c(&ctl->out, "nothing to do\n");
    }
    return pay_ctl_exit_of(status);
}

const struct pay_ctl_command pay_ctl_schemas_check = {
    .name = "schemas check",
    .what = "compare the public schemas with the registry",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run_check,
};

const struct pay_ctl_command pay_ctl_schemas_register = {
    .name = "schemas register",
    .what = "register the public schemas",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run_register,
};
