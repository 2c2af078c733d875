/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_consumer.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/io/kafka/kafka_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define SESSION_TIMEOUT_MS 45000
#define MAX_POLL_MS 300000
#define COMMIT_INTERVAL_MS 500
#define COMMIT_WAIT_MS 10000
#define FETCH_KBYTES_MAX 16384
#define LOOK_MS 1000 /* For a topic, and between two looks. */

struct part {
    const char *topic; /* One of the consumer's topics. */
    int32_t partition;
    int64_t first;     /* First offset polled since the assignment; -1: none. */
    int64_t position;  /* Next offset that poll returns; -1: none polled. */
    int64_t stored;    /* -1: none. */
    int64_t committed; /* What the group has acknowledged; -1: nothing of ours. */
};

/* The records that poll has taken so far in this call: a partition revoked meanwhile takes its own
 * back. */
struct batch {
    struct pay_kafka_msg *msgs;
    size_t count;
};

struct pay_kafka_consumer {
    rd_kafka_t *rk;
    rd_kafka_queue_t *commits; /* Answers to commits. */
    struct pay_kafka_note note;
    void (*on_assigned)(void *ctx, const struct pay_kafka_partition *parts, size_t count);
    void (*on_revoked)(void *ctx, const struct pay_kafka_partition *parts, size_t count, bool lost);
    void *ctx;
    char topics[PAY_KAFKA_CONSUMER_TOPICS_MAX][PAY_KAFKA_TOPIC_LEN_MAX + 1];
    size_t topic_count;
    struct part parts[PAY_KAFKA_CONSUMER_PARTITIONS_MAX];
    size_t part_count;
    size_t last_part; /* Records come in runs of one partition. */
    struct batch batch;
    bool waits;           /* A static member that has not subscribed: a topic is not there yet. */
    int64_t look_next_us; /* Earliest time of the next look. */
    bool joined;
    bool paused;
    bool closed;
    bool abandoned; /* Its close did not end. */
    bool too_many;  /* More partitions than the maximum were assigned. */
    bool commit_sent;
    struct pay_err commit_err; /* Of the latest answered commit. */
    int64_t commit_next_us;    /* Earliest time of the next unwaited commit. */
    int64_t commit_interval_us;
    int64_t commit_wait_ms;
};

/* ---- partitions ---- */

static const char *own_topic(const struct pay_kafka_consumer *consumer, const char *name)
{
    for (size_t i = 0; i < consumer->topic_count; i++) {
        if (strcmp(consumer->topics[i], name) == 0) {
            return consumer->topics[i];
        }
    }
    return NULL;
}

static bool is_part(const struct part *part, const char *topic, int32_t partition)
{
    return part->partition == partition &&
           (part->topic == topic || strcmp(part->topic, topic) == 0);
}

static struct part *find_part(struct pay_kafka_consumer *consumer, const char *topic,
                              int32_t partition)
{
    if (consumer->last_part < consumer->part_count &&
        is_part(&consumer->parts[consumer->last_part], topic, partition)) {
        return &consumer->parts[consumer->last_part];
    }
    for (size_t i = 0; i < consumer->part_count; i++) {
        if (is_part(&consumer->parts[i], topic, partition)) {
            consumer->last_part = i;
            return &consumer->parts[i];
        }
    }
    return NULL;
}

static void add_part(struct pay_kafka_consumer *consumer, const char *name, int32_t partition)
{
    const char *topic = own_topic(consumer, name);

    if (topic == NULL || find_part(consumer, topic, partition) != NULL) {
        return;
    }
    if (consumer->part_count == PAY_KAFKA_CONSUMER_PARTITIONS_MAX) {
        consumer->too_many = true;
        return;
    }
    consumer->parts[consumer->part_count++] = (struct part){
        .topic = topic,
        .partition = partition,
        .first = -1,
        .position = -1,
        .stored = -1,
        .committed = -1,
    };
}

static void remove_part(struct pay_kafka_consumer *consumer, const char *topic, int32_t partition)
{
    struct part *part = find_part(consumer, topic, partition);

    if (part != NULL) {
        *part = consumer->parts[--consumer->part_count];
    }
}

/* ---- commit ---- */

static void on_committed(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t *offsets, void *commit_opaque)
{
    struct pay_kafka_consumer *consumer = commit_opaque;

    (void)rk;
    consumer->commit_sent = false;
    consumer->commit_err = (struct pay_err){0};
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        (void)pay_kafka_fail(&consumer->commit_err, "kafka commit", code, rd_kafka_err2str(code));
    }
    for (int i = 0; offsets != NULL && i < offsets->cnt; i++) {
        const rd_kafka_topic_partition_t *answer = &offsets->elems[i];
        struct part *part = find_part(consumer, answer->topic, answer->partition);
        if (answer->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
            (void)pay_kafka_fail(&consumer->commit_err, "kafka commit", answer->err,
                                 rd_kafka_err2str(answer->err));
        } else if (code == RD_KAFKA_RESP_ERR_NO_ERROR && part != NULL) {
            part->committed = answer->offset;
        }
    }
}

static bool is_dirty(const struct part *part)
{
    return part->stored >= 0 && part->stored != part->committed;
}

/* @return NULL when there is nothing to commit. */
static rd_kafka_topic_partition_list_t *dirty_offsets(const struct pay_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list = NULL;

    for (size_t i = 0; i < consumer->part_count; i++) {
        const struct part *part = &consumer->parts[i];
        if (!is_dirty(part)) {
            continue;
        }
        if (list == NULL) {
            list = rd_kafka_topic_partition_list_new((int)consumer->part_count);
        }
        rd_kafka_topic_partition_list_add(list, part->topic, part->partition)->offset =
            part->stored;
    }
    return list;
}

/* One commit is under way at a time, so that an older answer never comes after a newer one. */
static enum pay_status send_commit(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    rd_kafka_topic_partition_list_t *offsets = dirty_offsets(consumer);

    if (offsets == NULL) {
        return PAY_OK;
    }
    consumer->commit_next_us = pay_clock_mono_us() + consumer->commit_interval_us;
    consumer->commit_sent = true;
    rd_kafka_resp_err_t code =
        rd_kafka_commit_queue(consumer->rk, offsets, consumer->commits, on_committed, consumer);
    rd_kafka_topic_partition_list_destroy(offsets);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        consumer->commit_sent = false;
        return pay_kafka_fail(err, "kafka commit", code, rd_kafka_err2str(code));
    }
    return PAY_OK;
}

static void serve_commits(struct pay_kafka_consumer *consumer, int timeout_ms)
{
    (void)rd_kafka_queue_poll_callback(consumer->commits, timeout_ms); /* on_committed says it. */
}

static bool wait_commit(struct pay_kafka_consumer *consumer, int64_t end_us)
{
    while (consumer->commit_sent) {
        int64_t left_ms = (end_us - pay_clock_mono_us()) / 1000;
        if (left_ms <= 0) {
            return false;
        }
        serve_commits(consumer, (int)left_ms);
    }
    return true;
}

static enum pay_status commit_and_wait(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    int64_t end_us = pay_clock_mono_us() + consumer->commit_wait_ms * 1000;

    consumer->commit_err = (struct pay_err){0};
    if (wait_commit(consumer, end_us)) {
        consumer->commit_err = (struct pay_err){0}; /* That was the former one. */
        enum pay_status status = send_commit(consumer, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    if (!wait_commit(consumer, end_us)) {
        return pay_err_set(err, PAY_RETRY, 0, "kafka commit", "no answer within %d ms",
                           (int)consumer->commit_wait_ms);
    }
    if (consumer->commit_err.status != PAY_OK && err != NULL) {
        *err = consumer->commit_err;
    }
    return consumer->commit_err.status;
}

enum pay_status pay_kafka_consumer_commit(struct pay_kafka_consumer *consumer, bool wait,
                                          struct pay_err *err)
{
    if (wait) {
        return commit_and_wait(consumer, err);
    }
    serve_commits(consumer, 0);
    if (consumer->commit_sent || pay_clock_mono_us() < consumer->commit_next_us) {
        return PAY_OK;
    }
    return send_commit(consumer, err);
}

bool pay_kafka_consumer_store(struct pay_kafka_consumer *consumer, const char *topic,
                              int32_t partition, int64_t next_offset)
{
    struct part *part = find_part(consumer, topic, partition);

    if (part == NULL || next_offset < part->stored) {
        return false;
    }
    part->stored = next_offset;
    return true;
}

/* ---- rebalance ---- */

static bool is_cooperative(rd_kafka_t *rk)
{
    const char *protocol = rd_kafka_rebalance_protocol(rk);

    return protocol != NULL && strcmp(protocol, "COOPERATIVE") == 0;
}

/* @param list NULL: nothing is assigned any more (eager only). */
static void apply_assignment(struct pay_kafka_consumer *consumer, bool add,
                             rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_error_t *error = NULL;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;

    if (list != NULL && is_cooperative(consumer->rk)) {
        error = add ? rd_kafka_incremental_assign(consumer->rk, list)
                    : rd_kafka_incremental_unassign(consumer->rk, list);
    } else {
        code = rd_kafka_assign(consumer->rk, add ? list : NULL);
    }
    if (error != NULL) {
        code = rd_kafka_error_code(error);
        rd_kafka_error_destroy(error);
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        pay_kafka_note_error(&consumer->note, code, "assignment");
    }
}

static void drop_from_batch(struct batch *batch, const char *topic, int32_t partition)
{
    size_t kept = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct pay_kafka_msg *msg = &batch->msgs[i];
        if (msg->partition == partition && strcmp(msg->topic, topic) == 0) {
            pay_kafka_msg_release(msg);
        } else {
            batch->msgs[kept++] = *msg;
        }
    }
    batch->count = kept;
}

/* The list as plain values; topics that are not ours cannot be in it. */
static size_t plain_parts(const struct pay_kafka_consumer *consumer,
                          const rd_kafka_topic_partition_list_t *list,
                          struct pay_kafka_partition *parts)
{
    size_t count = 0;

    for (int i = 0; i < list->cnt && count < PAY_KAFKA_CONSUMER_PARTITIONS_MAX; i++) {
        const char *topic = own_topic(consumer, list->elems[i].topic);
        if (topic != NULL) {
            parts[count++] = (struct pay_kafka_partition){topic, list->elems[i].partition};
        }
    }
    return count;
}

static void assign(struct pay_kafka_consumer *consumer, rd_kafka_topic_partition_list_t *list)
{
    struct pay_kafka_partition parts[PAY_KAFKA_CONSUMER_PARTITIONS_MAX];
    size_t count = plain_parts(consumer, list, parts);

    for (size_t i = 0; i < count; i++) {
        add_part(consumer, parts[i].topic, parts[i].partition);
    }
    apply_assignment(consumer, true, list);
    if (consumer->paused) {
        (void)rd_kafka_pause_partitions(consumer->rk,
                                        list); /* Fails only for unknown partitions. */
    }
    consumer->joined = true;
    if (consumer->on_assigned != NULL) {
        consumer->on_assigned(consumer->ctx, parts, count);
    }
}

static void revoke(struct pay_kafka_consumer *consumer, rd_kafka_topic_partition_list_t *list)
{
    struct pay_kafka_partition parts[PAY_KAFKA_CONSUMER_PARTITIONS_MAX];
    size_t count = plain_parts(consumer, list, parts);
    bool lost = rd_kafka_assignment_lost(consumer->rk) != 0;
    struct pay_err err;

    for (size_t i = 0; i < count; i++) {
        drop_from_batch(&consumer->batch, parts[i].topic, parts[i].partition);
    }
    if (consumer->on_revoked != NULL) {
        consumer->on_revoked(consumer->ctx, parts, count, lost);
    }
    if (!lost && commit_and_wait(consumer, &err) != PAY_OK) {
        pay_kafka_note_error(&consumer->note, err.code, "commit before giving partitions back");
    }
    for (size_t i = 0; i < count; i++) {
        remove_part(consumer, parts[i].topic, parts[i].partition);
    }
    consumer->joined = consumer->part_count > 0; /* Cooperative: the others stay. */
    if (consumer->paused) {
        /* librdkafka keeps a partition's pause beyond its assignment: when it comes back after our
         * resume, nobody would end it. */
        (void)rd_kafka_resume_partitions(consumer->rk, list);
    }
    apply_assignment(consumer, false, list);
}

static void on_rebalance(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                         rd_kafka_topic_partition_list_t *list, void *opaque)
{
    struct pay_kafka_consumer *consumer = opaque;

    (void)rk;
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assign(consumer, list);
    } else if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        revoke(consumer, list);
    } else {
        pay_kafka_note_error(&consumer->note, code, "rebalance");
        apply_assignment(consumer, false, NULL);
    }
}

static void on_error(rd_kafka_t *rk, int code, const char *text, void *opaque)
{
    struct pay_kafka_consumer *consumer = opaque;

    (void)rk;
    pay_kafka_note_error(&consumer->note, code, text);
}

/* ---- make ---- */

static int or_default(int value, int by_default)
{
    return value == 0 ? by_default : value;
}

static bool is_static(const struct pay_kafka_consumer_options *options)
{
    return options->instance_id != NULL && options->instance_id[0] != 0;
}

static enum pay_status make_conf(const struct pay_kafka_consumer_options *options,
                                 rd_kafka_conf_t **ret_conf, struct pay_err *err)
{
    int64_t kbytes = or_default(options->fetch_kbytes_max, FETCH_KBYTES_MAX);
    const struct pay_kafka_setting settings[] = {
        {"group.id", options->group_id, 0},
        {"session.timeout.ms", NULL, or_default(options->session_timeout_ms, SESSION_TIMEOUT_MS)},
        {"max.poll.interval.ms", NULL, or_default(options->max_poll_ms, MAX_POLL_MS)},
        {"enable.auto.commit", "false", 0},
        {"enable.auto.offset.store", "false", 0},
        {"auto.offset.reset", "earliest", 0},
        {"allow.auto.create.topics", "false", 0},
        {"queued.max.messages.kbytes", NULL, kbytes},
        {"fetch.max.bytes", NULL, kbytes * 1024},
        {"group.instance.id", options->instance_id, 0}, /* Last: it may be left out. */
    };
    size_t count = sizeof settings / sizeof settings[0];

    if (options->group_id == NULL || options->group_id[0] == 0) {
        return pay_err_set(err, PAY_FATAL, 0, "kafka consumer", "group id is not set");
    }
    return pay_kafka_conf_build(&options->conf, settings, is_static(options) ? count : count - 1,
                                ret_conf, err);
}

static enum pay_status take_topics(struct pay_kafka_consumer *consumer,
                                   const struct pay_kafka_consumer_options *options,
                                   struct pay_err *err)
{
    if (options->topic_count == 0 || options->topic_count > PAY_KAFKA_CONSUMER_TOPICS_MAX) {
        return pay_err_set(err, PAY_FATAL, 0, "kafka consumer", "1 to %d topics, not %zu",
                           PAY_KAFKA_CONSUMER_TOPICS_MAX, options->topic_count);
    }
    for (size_t i = 0; i < options->topic_count; i++) {
        const char *name = options->topics[i];
        if (name[0] == '^' ||
            !pay_str_copy(consumer->topics[i], sizeof consumer->topics[i], pay_str_of(name))) {
            return pay_err_set(err, PAY_FATAL, 0, "kafka consumer",
                               "topic is a pattern or too long");
        }
    }
    consumer->topic_count = options->topic_count;
    return PAY_OK;
}

static enum pay_status subscribe(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)consumer->topic_count);

    for (size_t i = 0; i < consumer->topic_count; i++) {
        rd_kafka_topic_partition_list_add(list, consumer->topics[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(consumer->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? PAY_OK
               : pay_kafka_fail(err, "kafka subscribe", code, rd_kafka_err2str(code));
}

static enum pay_status topic_is_there(struct pay_kafka_consumer *consumer, const char *name,
                                      struct pay_err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(consumer->rk, name, NULL);
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;

    if (topic == NULL) {
        return pay_kafka_fail(err, "kafka subscribe", rd_kafka_last_error(), name);
    }
    enum pay_status status = pay_kafka_metadata(consumer->rk, topic, LOOK_MS, &metadata, err);
    if (status == PAY_OK) {
        if (metadata->topic_cnt == 1) {
            code = metadata->topics[0].err;
        }
        rd_kafka_metadata_destroy(metadata);
        status = code == RD_KAFKA_RESP_ERR_NO_ERROR
                     ? PAY_OK
                     : pay_kafka_fail(err, "kafka subscribe", code, name);
    }
    rd_kafka_topic_destroy(topic);
    return status;
}

/* A broker gives a static member that comes back what it had before, and nobody divides anew: one
 * that joined while a topic was not there, and was restarted before it saw it, would never read it.
 * @return PAY_RETRY: a topic is not there. PAY_OK: subscribed, or it is not yet time to look. */
static enum pay_status subscribe_when_all_is_there(struct pay_kafka_consumer *consumer,
                                                   struct pay_err *err)
{
    enum pay_status status = PAY_OK;

    if (pay_clock_mono_us() < consumer->look_next_us) {
        return PAY_OK;
    }
    for (size_t i = 0; status == PAY_OK && i < consumer->topic_count; i++) {
        status = topic_is_there(consumer, consumer->topics[i], err);
    }
    if (status == PAY_OK) {
        status = subscribe(consumer, err);
    }
    consumer->waits = status != PAY_OK;
    consumer->look_next_us = pay_clock_mono_us() + INT64_C(1000) * LOOK_MS;
    return status;
}

static enum pay_status start(struct pay_kafka_consumer *consumer, rd_kafka_conf_t *conf,
                             struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];

    rd_kafka_conf_set_opaque(conf, consumer);
    rd_kafka_conf_set_rebalance_cb(conf, on_rebalance);
    rd_kafka_conf_set_error_cb(conf, on_error);
    consumer->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (consumer->rk == NULL) {
        rd_kafka_conf_destroy(conf); /* Only a success takes it. */
        return pay_err_set(err, PAY_FATAL, 0, "kafka consumer", "%s", why);
    }
    (void)rd_kafka_poll_set_consumer(consumer->rk); /* Fails only without a group. */
    consumer->commits = rd_kafka_queue_new(consumer->rk);
    return consumer->waits ? PAY_OK : subscribe(consumer, err);
}

enum pay_status pay_kafka_consumer_new(const struct pay_kafka_consumer_options *options,
                                       struct pay_kafka_consumer **ret_consumer,
                                       struct pay_err *err)
{
    rd_kafka_conf_t *conf = NULL;
    struct pay_kafka_consumer *consumer = pay_mem_new(1, sizeof *consumer);

    if (consumer == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "kafka consumer", "out of memory");
    }
    (void)pthread_mutex_init(&consumer->note.lock, NULL); /* Cannot fail with default attributes. */
    consumer->on_assigned = options->on_assigned;
    consumer->on_revoked = options->on_revoked;
    consumer->ctx = options->ctx;
    consumer->waits = is_static(options);
    consumer->commit_wait_ms = COMMIT_WAIT_MS;
    consumer->commit_interval_us =
        (int64_t)or_default(options->commit_interval_ms, COMMIT_INTERVAL_MS) * 1000;
    enum pay_status status = take_topics(consumer, options, err);
    if (status == PAY_OK) {
        status = make_conf(options, &conf, err);
    }
    if (status == PAY_OK) {
        status = start(consumer, conf, err);
    }
    if (status != PAY_OK) {
        pay_kafka_consumer_free(consumer);
        return status;
    }
    *ret_consumer = consumer;
    return PAY_OK;
}

/* ---- poll ---- */

static void read_headers(const rd_kafka_message_t *rkm, struct pay_kafka_headers *headers)
{
    rd_kafka_headers_t *list = NULL;
    const char *name = NULL;
    const void *value = NULL;
    size_t len = 0;

    if (rd_kafka_message_headers(rkm, &list) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    for (size_t i = 0;
         rd_kafka_header_get_all(list, i, &name, &value, &len) == RD_KAFKA_RESP_ERR_NO_ERROR; i++) {
        if (!pay_kafka_headers_add(headers, name, (struct pay_bytes){value, len})) {
            headers->over = true;
            return;
        }
    }
}

void pay_kafka_view(rd_kafka_message_t *rkm, const char *topic, struct pay_kafka_msg *msg)
{
    rd_kafka_timestamp_type_t kind = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    int64_t timestamp_ms = rd_kafka_message_timestamp(rkm, &kind);

    msg->topic = topic;
    msg->partition = rkm->partition;
    msg->offset = rkm->offset;
    msg->key = (struct pay_bytes){rkm->key, rkm->key_len};
    msg->value = (struct pay_bytes){rkm->payload, rkm->len};
    msg->timestamp_ms = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE ? -1 : timestamp_ms;
    msg->headers.count = 0;
    msg->headers.over = false;
    msg->handle = rkm;
    read_headers(rkm, &msg->headers);
}

static void take(struct pay_kafka_consumer *consumer, struct part *part, rd_kafka_message_t *rkm)
{
    pay_kafka_view(rkm, part->topic, &consumer->batch.msgs[consumer->batch.count++]);
    part->position = rkm->offset + 1;
    if (part->first < 0) {
        part->first = rkm->offset;
    }
}

void pay_kafka_msg_release(struct pay_kafka_msg *msg)
{
    if (msg->handle != NULL) {
        rd_kafka_message_destroy(msg->handle);
        msg->handle = NULL;
    }
}

/* @return false when there is nothing more to take now. */
static bool poll_one(struct pay_kafka_consumer *consumer, int timeout_ms)
{
    rd_kafka_message_t *rkm = rd_kafka_consumer_poll(consumer->rk, timeout_ms);

    if (rkm == NULL) {
        return false;
    }
    if (rkm->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        if (rkm->err != RD_KAFKA_RESP_ERR__PARTITION_EOF) {
            pay_kafka_note_error(&consumer->note, rkm->err, rd_kafka_message_errstr(rkm));
        }
        rd_kafka_message_destroy(rkm);
        return false;
    }
    struct part *part = find_part(consumer, rd_kafka_topic_name(rkm->rkt), rkm->partition);
    if (part == NULL) {
        rd_kafka_message_destroy(rkm); /* Fetched before its partition was taken away. */
        return true;
    }
    take(consumer, part, rkm);
    return true;
}

static enum pay_status check_client(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];
    struct pay_err noted;
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(consumer->rk, why, sizeof why);

    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return pay_err_set(err, PAY_FATAL, code, "kafka poll", "%s: %s", pay_kafka_error_name(code),
                           why);
    }
    if (consumer->too_many) {
        return pay_err_set(err, PAY_FATAL, 0, "kafka poll", "more than %d partitions assigned",
                           PAY_KAFKA_CONSUMER_PARTITIONS_MAX);
    }
    if (!pay_kafka_note_take(&consumer->note, &noted)) {
        return PAY_OK;
    }
    if (err != NULL) {
        *err = noted;
    }
    /* A refusal is the broker's mood about this client, not about a record. */
    return noted.status == PAY_FATAL ? PAY_FATAL : PAY_RETRY;
}

static void commit_if_due(struct pay_kafka_consumer *consumer)
{
    struct pay_err err;

    if (pay_kafka_consumer_commit(consumer, false, &err) != PAY_OK) {
        pay_kafka_note_error(&consumer->note, err.code, "commit");
    }
    if (consumer->commit_err.status != PAY_OK) {
        pay_kafka_note_error(&consumer->note, consumer->commit_err.code, "commit");
        consumer->commit_err = (struct pay_err){0};
    }
}

enum pay_status pay_kafka_consumer_poll(struct pay_kafka_consumer *consumer, size_t max,
                                        int timeout_ms, struct pay_kafka_msg ret_msgs[],
                                        size_t *ret_count, struct pay_err *err)
{
    consumer->batch = (struct batch){.msgs = ret_msgs};
    *ret_count = 0;
    if (consumer->waits) {
        enum pay_status status = subscribe_when_all_is_there(consumer, err);
        if (status != PAY_OK) {
            consumer->batch = (struct batch){0};
            return status;
        }
    }
    commit_if_due(consumer);
    while (consumer->batch.count < max &&
           poll_one(consumer, consumer->batch.count == 0 ? timeout_ms : 0)) {
    }
    size_t count = consumer->batch.count;
    consumer->batch = (struct batch){0};
    if (count > 0) {
        *ret_count = count; /* An error that was noted meanwhile comes with the next empty poll. */
        return PAY_OK;
    }
    return check_client(consumer, err);
}

/* ---- pause, rewind, state ---- */

static rd_kafka_topic_partition_list_t *all_parts(const struct pay_kafka_consumer *consumer)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)consumer->part_count + 1);

    for (size_t i = 0; i < consumer->part_count; i++) {
        rd_kafka_topic_partition_list_add(list, consumer->parts[i].topic,
                                          consumer->parts[i].partition);
    }
    return list;
}

static enum pay_status check_list(const rd_kafka_topic_partition_list_t *list,
                                  rd_kafka_resp_err_t code, const char *op, struct pay_err *err)
{
    for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; i++) {
        code = list->elems[i].err;
    }
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? PAY_OK
               : pay_kafka_fail(err, op, code, rd_kafka_err2str(code));
}

static enum pay_status set_paused(struct pay_kafka_consumer *consumer, bool paused,
                                  struct pay_err *err)
{
    rd_kafka_topic_partition_list_t *list = all_parts(consumer);
    rd_kafka_resp_err_t code = paused ? rd_kafka_pause_partitions(consumer->rk, list)
                                      : rd_kafka_resume_partitions(consumer->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return pay_kafka_fail(err, paused ? "kafka pause" : "kafka resume", code,
                              rd_kafka_err2str(code));
    }
    /* A partition that librdkafka does not know has an error of its own, and fetches nothing: the
     * others are paused, or not, all the same. */
    consumer->paused = paused;
    return PAY_OK;
}

enum pay_status pay_kafka_consumer_pause(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    return set_paused(consumer, true, err);
}

enum pay_status pay_kafka_consumer_resume(struct pay_kafka_consumer *consumer, struct pay_err *err)
{
    return set_paused(consumer, false, err);
}

bool pay_kafka_consumer_paused(const struct pay_kafka_consumer *consumer)
{
    return consumer->paused;
}

static int64_t rewind_target(const struct part *part)
{
    return part->stored >= 0 ? part->stored : part->first;
}

static bool wants_rewind(const struct part *part, const char *topic, int32_t partition)
{
    return (topic == NULL || is_part(part, topic, partition)) &&
           part->position != rewind_target(part);
}

static void note_rewound(struct pay_kafka_consumer *consumer,
                         const rd_kafka_topic_partition_list_t *list)
{
    for (int i = 0; i < list->cnt; i++) {
        struct part *part = find_part(consumer, list->elems[i].topic, list->elems[i].partition);
        if (part != NULL && list->elems[i].err == RD_KAFKA_RESP_ERR_NO_ERROR) {
            part->position = list->elems[i].offset;
        }
    }
}

enum pay_status pay_kafka_consumer_rewind(struct pay_kafka_consumer *consumer, const char *topic,
                                          int32_t partition, int timeout_ms, struct pay_err *err)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)consumer->part_count + 1);
    enum pay_status status = PAY_OK;

    for (size_t i = 0; i < consumer->part_count; i++) {
        const struct part *part = &consumer->parts[i];
        if (wants_rewind(part, topic, partition)) {
            rd_kafka_topic_partition_list_add(list, part->topic, part->partition)->offset =
                rewind_target(part);
        }
    }
    if (list->cnt > 0) {
        rd_kafka_error_t *error = rd_kafka_seek_partitions(consumer->rk, list, timeout_ms);
        status = check_list(list,
                            error != NULL ? rd_kafka_error_code(error) : RD_KAFKA_RESP_ERR_NO_ERROR,
                            "kafka rewind", err);
        if (error == NULL) {
            note_rewound(consumer, list);
        } else {
            rd_kafka_error_destroy(error);
        }
    }
    rd_kafka_topic_partition_list_destroy(list);
    return status;
}

bool pay_kafka_consumer_joined(const struct pay_kafka_consumer *consumer)
{
    return consumer->joined;
}

size_t pay_kafka_consumer_assigned(const struct pay_kafka_consumer *consumer)
{
    return consumer->part_count;
}

size_t pay_kafka_consumer_state(const struct pay_kafka_consumer *consumer,
                                struct pay_kafka_partition_state ret_states[], size_t max)
{
    size_t count = consumer->part_count < max ? consumer->part_count : max;

    for (size_t i = 0; i < count; i++) {
        const struct part *part = &consumer->parts[i];
        int64_t low = -1;
        int64_t high = -1;
        if (rd_kafka_get_watermark_offsets(consumer->rk, part->topic, part->partition, &low,
                                           &high) != RD_KAFKA_RESP_ERR_NO_ERROR ||
            high < 0) {
            high = -1; /* Not fetched yet. */
        }
        bool known = high >= 0 && part->position >= 0;
        ret_states[i] = (struct pay_kafka_partition_state){
            .topic = part->topic,
            .partition = part->partition,
            .position = part->position,
            .stored = part->stored,
            .high = high,
            .lag_records = known && high > part->position ? high - part->position
                           : known                        ? 0
                                                          : -1,
        };
    }
    return count;
}

int64_t pay_kafka_consumer_lag_records(const struct pay_kafka_consumer *consumer)
{
    struct pay_kafka_partition_state states[PAY_KAFKA_CONSUMER_PARTITIONS_MAX];
    size_t count = pay_kafka_consumer_state(consumer, states, PAY_KAFKA_CONSUMER_PARTITIONS_MAX);
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        sum += states[i].lag_records > 0 ? states[i].lag_records : 0;
    }
    return sum;
}

/* ---- end ---- */

enum pay_status pay_kafka_consumer_close(struct pay_kafka_consumer *consumer, int timeout_ms,
                                         struct pay_err *err)
{
    int64_t end_us = pay_clock_mono_us() + (int64_t)timeout_ms * 1000;
    rd_kafka_queue_t *events = rd_kafka_queue_new(consumer->rk);

    consumer->closed = true;
    consumer->commit_wait_ms = timeout_ms < COMMIT_WAIT_MS ? timeout_ms : COMMIT_WAIT_MS;
    rd_kafka_error_t *error = rd_kafka_consumer_close_queue(consumer->rk, events);
    bool asked = error == NULL;
    if (error != NULL) {
        (void)pay_kafka_fail(err, "kafka close", rd_kafka_error_code(error),
                             rd_kafka_error_string(error));
        rd_kafka_error_destroy(error);
    }
    while (asked && !rd_kafka_consumer_closed(consumer->rk)) {
        int64_t left_ms = (end_us - pay_clock_mono_us()) / 1000;
        if (left_ms <= 0) {
            break;
        }
        /* Records that were fetched and not polled come out of it too: poll_callback() would abort.
         */
        rd_kafka_message_t *rkm =
            rd_kafka_consume_queue(events, left_ms < 100 ? (int)left_ms : 100);
        if (rkm != NULL) {
            rd_kafka_message_destroy(rkm);
        }
    }
    bool done = asked && rd_kafka_consumer_closed(consumer->rk);
    rd_kafka_queue_destroy(events);
    consumer->abandoned = !done && asked;
    if (consumer->abandoned) {
        return pay_err_set(err, PAY_RETRY, 0, "kafka close", "not closed within %d ms", timeout_ms);
    }
    return done ? PAY_OK : PAY_RETRY;
}

bool pay_kafka_consumer_abandoned(const struct pay_kafka_consumer *consumer)
{
    return consumer->abandoned;
}

struct pay_kafka_consumer *pay_kafka_consumer_free(struct pay_kafka_consumer *consumer)
{
    if (consumer == NULL || consumer->abandoned) {
        return NULL; /* To destroy it waits for the close, for as long as the broker is away. */
    }
    if (consumer->commits != NULL) {
        rd_kafka_queue_destroy(consumer->commits);
    }
    if (consumer->rk != NULL) {
        rd_kafka_destroy_flags(consumer->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    }
    (void)pthread_mutex_destroy(&consumer->note.lock);
    return pay_mem_free(consumer);
}
