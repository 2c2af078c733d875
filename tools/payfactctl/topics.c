/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_admin.h"
#include "common/store/migration.h"
#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"

#define PARTITIONS_MAX 1024
#define TIMEOUT_MS 30000

static const char op[] = "topics";

struct options {
    int64_t partitions; /* 0: what is there, else the default. */
    int64_t replication;
    bool only_check;
    bool may_grow;
};

static const struct pay_arg args[] = {
    {"--partitions", PAY_ARG_INT, offsetof(struct options, partitions), 0, PARTITIONS_MAX, "N",
     false, "of every topic; by default what they have, else 12"},
    {"--replication", PAY_ARG_INT, offsetof(struct options, replication), -1, 99, "R", false,
     "of new topics; by default the brokers' own"},
    {"--check", PAY_ARG_FLAG, offsetof(struct options, only_check), 0, 0, NULL, false,
     "change nothing; ends with 4 when something differs"},
    {"--grow", PAY_ARG_FLAG, offsetof(struct options, may_grow), 0, 0, NULL, false,
     "let existing topics get more partitions: with every service stopped and an empty outbox"},
};

struct work {
    struct pay_ctl *ctl;
    const struct options *options;
    struct pay_kafka_admin *admin;
    char names[PAY_TOPIC_COUNT][PAY_TOPIC_NAME_SIZE];
    struct pay_kafka_topic_info infos[PAY_TOPIC_COUNT];
    int32_t least, most; /* Partitions of those that exist; 0: none does. */
    int32_t wanted;
};

static enum pay_status look(struct work *work, struct pay_err *err)
{
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        struct pay_kafka_topic_info *info = &work->infos[i];
        if (!pay_topic_name(work->names[i], (enum pay_topic)i, work->ctl->settings.topic_prefix)) {
            return pay_err_set(err, PAY_FATAL, 0, op,
                               "PAYFACT_TOPIC_PREFIX \"%.60s\" does not make topic names",
                               work->ctl->settings.topic_prefix);
        }
        const enum pay_status status =
            pay_kafka_admin_describe(work->admin, work->names[i], TIMEOUT_MS, info, err);
        if (status != PAY_OK) {
            return status;
        }
        if (info->exists) {
            work->most = info->partitions > work->most ? info->partitions : work->most;
            work->least =
                work->least == 0 || info->partitions < work->least ? info->partitions : work->least;
        }
    }
    work->wanted = work->options->partitions > 0 ? (int32_t)work->options->partitions
                   : work->most > 0              ? work->most
                                                 : PAY_TOPIC_PARTITIONS_DEFAULT;
    return PAY_OK;
}

/* ---- more partitions ---- */

static enum pay_status grow_topics(struct work *work, struct pay_err *err)
{
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        if (!work->infos[i].exists || work->infos[i].partitions == work->wanted) {
            continue;
        }
        const enum pay_status status =
            pay_kafka_admin_grow(work->admin, work->names[i], work->wanted, TIMEOUT_MS, err);
        if (status != PAY_OK) {
            return status;
        }
        pay_buf_printf(&work->ctl->out, "%s: now has %d partitions\n", work->names[i],
                       (int)work->wanted);
        work->infos[i].partitions = work->wanted;
    }
    return PAY_OK;
}

/* The outbox's shards are the partitions: it must be empty, and stay so until all have changed. */
static enum pay_status grow_held(struct work *work, struct pay_store *store, struct pay_err *err)
{
    bool is_empty = false;
    enum pay_status status = pay_store_connect(store, err);
    if (status == PAY_OK) {
        status = pay_store_outbox_hold(store, &is_empty, err);
    }
    if (status != PAY_OK) {
        return status;
    }
    status = is_empty ? grow_topics(work, err)
                      : pay_err_set(err, PAY_REJECT, 0, op,
                                    "the outbox is not empty: stop the processor, let the publisher"
                                    " finish, stop it, then try again");
    pay_store_rollback(store);
    return status;
}

static enum pay_status grow(struct work *work, struct pay_err *err)
{
    struct pay_pg_options options;
    struct pay_store *store = NULL;
    if (work->wanted < work->most) {
        return pay_err_set(err, PAY_REJECT, 0, op,
                           "topics have %d partitions: Kafka cannot take"
                           " any away",
                           (int)work->most);
    }
    enum pay_status status = pay_ctl_pg_options(work->ctl, "payfactctl topics", &options, err);
    if (status == PAY_OK) {
        status = pay_store_new(&options, &store, err);
    }
    if (status == PAY_OK) {
        status = grow_held(work, store, err);
    }
    store = pay_store_free(store);
    return status;
}

/* ---- make and compare ---- */

static enum pay_status ensure(struct work *work, int topic, struct pay_err *err)
{
    const struct pay_topic_spec *of = pay_topic_spec((enum pay_topic)topic);
    char retention[24];
    char bytes[24];
    (void)snprintf(retention, sizeof retention, "%" PRId64, of->retention_ms);
    (void)snprintf(bytes, sizeof bytes, "%d", of->max_message_bytes);
    const struct pay_kafka_topic_config configs[] = {
        {"retention.ms", retention},
        {"max.message.bytes", bytes},
    };
    const struct pay_kafka_topic_spec spec = {
        .name = work->names[topic],
        .partitions = work->wanted,
        .replication = (int16_t)work->options->replication,
        .configs = configs,
        .config_count = sizeof configs / sizeof configs[0],
    };
    return pay_kafka_admin_ensure(work->admin, &spec, TIMEOUT_MS, &work->ctl->out, err);
}

static enum pay_status ensure_all(struct work *work, struct pay_err *err)
{
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        const enum pay_status status = ensure(work, i, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    if (work->ctl->out.len == 0) {
        pay_buf_printf(&work->ctl->out, "nothing to do: %d topics with %d partitions\n",
                       PAY_TOPIC_COUNT, (int)work->wanted);
    }
    return PAY_OK;
}

/* Topics whose schemas nobody can register are not as they should be either. */
static enum pay_status check_schemas(struct work *work, struct pay_err *err)
{
    size_t differences = 0;
    return work->ctl->settings.registry_url[0] == '\0'
               ? PAY_OK
               : pay_ctl_schemas_compare(work->ctl, &differences, err);
}

/* Whatever differs is a line; only a server that is away ends it early. */
static enum pay_status check_all(struct work *work, struct pay_err *err)
{
    for (int i = 0; i < PAY_TOPIC_COUNT; i++) {
        if (!work->infos[i].exists) {
            pay_buf_printf(&work->ctl->out, "%s: is missing\n", work->names[i]);
            continue;
        }
        const enum pay_status status = ensure(work, i, err);
        if (status != PAY_OK && status != PAY_REJECT) {
            return status;
        }
    }
    const enum pay_status status = check_schemas(work, err);
    if (status != PAY_OK) {
        return status;
    }
    return work->ctl->out.len == 0 ? PAY_OK
                                   : pay_err_set(err, PAY_REJECT, 0, op,
                                                 "topics are not as they should be, see the list");
}

static enum pay_status make(struct work *work, struct pay_err *err)
{
    if (work->most > 0 && (work->wanted != work->most || work->wanted != work->least)) {
        if (!work->options->may_grow) {
            return pay_err_set(
                err, PAY_REJECT, 0, op,
                "topics have %d to %d partitions, wanted %d: a change moves keys, see"
                " --grow",
                (int)work->least, (int)work->most, (int)work->wanted);
        }
        const enum pay_status status = grow(work, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    return ensure_all(work, err);
}

static enum pay_status topics(struct work *work, struct pay_err *err)
{
    struct pay_kafka_conf conf;
    enum pay_status status = pay_ctl_kafka_conf(work->ctl, &conf, err);
    if (status == PAY_OK) {
        status = pay_kafka_admin_new(&conf, &work->admin, err);
    }
    if (status == PAY_OK) {
        status = look(work, err);
    }
    if (status == PAY_OK) {
        status = work->options->only_check ? check_all(work, err) : make(work, err);
    }
    return status;
}

static enum pay_ctl_exit run(struct pay_ctl *ctl, const void *options, struct pay_err *err)
{
    struct work work = {.ctl = ctl, .options = options};
    const enum pay_status status = topics(&work, err);
    work.admin = pay_kafka_admin_free(work.admin);
    return pay_ctl_exit_of(status);
}

const struct pay_ctl_command pay_ctl_topics = {
    .name = "topics",
    .what = "make the topics that are missing, check those that are there",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run,
};
