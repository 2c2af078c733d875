/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_producer.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/io/kafka/kafka_internal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define QUEUE_RECORDS_MAX 100000
#define QUEUE_KBYTES_MAX 65536
/* A broker holds a topic's max.message.bytes against the whole batch: a larger one would be refused
 * with every small record in it. Below the smallest limit of contracts/topics.c. */
#define BATCH_BYTES_MAX 131072
#define MESSAGE_BYTES_MAX 1000000
/* More would lose records: Kafka takes any sequence from a producer that a partition does not know
 * (a new topic, a new producer, one that was silent for a day): when the first request is refused,
 * as by a broker that is not the leader yet, it takes the second one that is under way, and
 * librdkafka then reports the first one's records as delivered
 * (https://github.com/confluentinc/confluent-kafka-go/issues/921). One is not enough alone: a
 * second request that is made already may leave while the producer's id is renewed. Then
 * pay_kafka_persisted_of() sees it. */
#define IN_FLIGHT_MAX 1
#define OWN_THREAD_TURN_MS 100
#define PURGE_MS_MAX \
    10000 /* Purged records are reported at once; this only bounds a library's bug. */

struct topic {
    char name[PAY_KAFKA_TOPIC_LEN_MAX + 1];
    rd_kafka_topic_t *handle;
};

struct pay_kafka_producer {
    rd_kafka_t *rk;
    struct pay_kafka_note note;
    pay_kafka_report_fn *on_report;
    void (*on_reports_end)(void *ctx);
    void *ctx;
    pthread_rwlock_t lock; /* Readers produce; writers add a topic or close. */
    struct topic topics[PAY_KAFKA_PRODUCER_TOPICS_MAX];
    size_t topic_count;
    bool closing;
    bool has_thread;
    pthread_t thread;
    atomic_bool stop_thread;
    atomic_size_t
        pending;    /* Taken and not reported. The library's own count has other events in it. */
    size_t reports; /* Of this turn; only the serving thread touches it. */
    size_t undelivered; /* The same, of all turns. */
};

/* ---- reports ---- */

static const char *const no_reason = "";

static const char *reason_of(const rd_kafka_message_t *rkm, enum pay_status status)
{
    if (status == PAY_OK) {
        return no_reason;
    }
    return rkm->err != 0 ? pay_kafka_error_name(rkm->err) : "NOT_ACKNOWLEDGED_ITSELF";
}

static void on_delivery(rd_kafka_t *rk, const rd_kafka_message_t *rkm, void *opaque)
{
    struct pay_kafka_producer *producer = opaque;
    enum pay_kafka_persisted persisted =
        pay_kafka_persisted_of(rd_kafka_message_status(rkm), rkm->offset);
    enum pay_status status = pay_kafka_produce_class(rkm->err, persisted);
    const struct pay_kafka_report report = {
        .tag = rkm->_private,
        .status = status,
        .persisted = persisted,
        .code = rkm->err,
        .reason = reason_of(rkm, status),
        .partition = rkm->partition,
        .offset = status == PAY_OK ? rkm->offset : -1,
        .latency_us = rd_kafka_message_latency(rkm),
    };

    (void)rk;
    atomic_fetch_sub(&producer->pending, 1);
    producer->reports++;
    producer->undelivered += status != PAY_OK ? 1 : 0;
    producer->on_report(producer->ctx, &report);
}

static void on_error(rd_kafka_t *rk, int code, const char *text, void *opaque)
{
    struct pay_kafka_producer *producer = opaque;

    (void)rk;
    pay_kafka_note_error(&producer->note, code, text);
}

static size_t serve(struct pay_kafka_producer *producer, int timeout_ms)
{
    producer->reports = 0;
    (void)rd_kafka_poll(producer->rk, timeout_ms); /* Its count includes other events. */
    if (producer->reports > 0 && producer->on_reports_end != NULL) {
        producer->on_reports_end(producer->ctx);
    }
    return producer->reports;
}

static void *own_thread(void *arg)
{
    struct pay_kafka_producer *producer = arg;

    while (!atomic_load(&producer->stop_thread)) {
        (void)serve(producer, OWN_THREAD_TURN_MS); /* Nobody asks how many. */
    }
    return NULL;
}

/* ---- make ---- */

static int or_default(int value, int by_default)
{
    return value == 0 ? by_default : value;
}

static enum pay_status make_conf(const struct pay_kafka_producer_options *options,
                                 rd_kafka_conf_t **ret_conf, struct pay_err *err)
{
    const struct pay_kafka_setting settings[] = {
        {"acks", "all", 0},
        {"enable.idempotence", "true", 0},
        {"max.in.flight.requests.per.connection", NULL, IN_FLIGHT_MAX},
        {"partitioner", "murmur2_random", 0},
        {"message.timeout.ms", NULL, options->message_timeout_ms},
        {"message.max.bytes", NULL, or_default(options->message_bytes_max, MESSAGE_BYTES_MAX)},
        {"batch.size", NULL, BATCH_BYTES_MAX},
        {"queue.buffering.max.messages", NULL,
         or_default(options->queue_records_max, QUEUE_RECORDS_MAX)},
        {"queue.buffering.max.kbytes", NULL,
         or_default(options->queue_kbytes_max, QUEUE_KBYTES_MAX)},
        {"linger.ms", NULL, options->linger_ms < 0 ? 0 : options->linger_ms},
    };

    return pay_kafka_conf_build(&options->conf, settings, sizeof settings / sizeof settings[0],
                                ret_conf, err);
}

static enum pay_status start(struct pay_kafka_producer *producer, rd_kafka_conf_t *conf,
                             bool with_thread, struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];

    rd_kafka_conf_set_opaque(conf, producer);
    rd_kafka_conf_set_dr_msg_cb(conf, on_delivery);
    rd_kafka_conf_set_error_cb(conf, on_error);
    producer->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (producer->rk == NULL) {
        rd_kafka_conf_destroy(conf); /* Only a success takes it. */
        return pay_err_set(err, PAY_FATAL, 0, "kafka producer", "%s", why);
    }
    if (with_thread) {
        if (pthread_create(&producer->thread, NULL, own_thread, producer) != 0) {
            return pay_err_set(err, PAY_RETRY, 0, "kafka producer", "no thread");
        }
        producer->has_thread = true;
    }
    return PAY_OK;
}

enum pay_status pay_kafka_producer_new(const struct pay_kafka_producer_options *options,
                                       struct pay_kafka_producer **ret_producer,
                                       struct pay_err *err)
{
    rd_kafka_conf_t *conf = NULL;
    enum pay_status status = make_conf(options, &conf, err);

    PAY_ASSERT(options->on_report != NULL);
    if (status != PAY_OK) {
        return status;
    }
    struct pay_kafka_producer *producer = pay_mem_new(1, sizeof *producer);
    if (producer == NULL) {
        rd_kafka_conf_destroy(conf);
        return pay_err_set(err, PAY_RETRY, 0, "kafka producer", "out of memory");
    }
    producer->on_report = options->on_report;
    producer->on_reports_end = options->on_reports_end;
    producer->ctx = options->ctx;
    (void)pthread_rwlock_init(&producer->lock, NULL); /* Cannot fail with default attributes. */
    (void)pthread_mutex_init(&producer->note.lock, NULL);
    status = start(producer, conf, options->own_thread, err);
    if (status != PAY_OK) {
        pay_kafka_producer_free(producer);
        return status;
    }
    *ret_producer = producer;
    return PAY_OK;
}

/* ---- produce ---- */

static rd_kafka_topic_t *find_topic(const struct pay_kafka_producer *producer, const char *name)
{
    for (size_t i = 0; i < producer->topic_count; i++) {
        if (strcmp(producer->topics[i].name, name) == 0) {
            return producer->topics[i].handle;
        }
    }
    return NULL;
}

/* Called with the write lock held. */
static rd_kafka_topic_t *add_topic(struct pay_kafka_producer *producer, const char *name)
{
    rd_kafka_topic_t *handle = find_topic(producer, name); /* Somebody may have been faster. */
    struct topic *topic = &producer->topics[producer->topic_count];

    if (handle != NULL || producer->topic_count == PAY_KAFKA_PRODUCER_TOPICS_MAX ||
        !pay_str_copy(topic->name, sizeof topic->name, pay_str_of(name))) {
        return handle;
    }
    topic->handle = rd_kafka_topic_new(producer->rk, name, NULL);
    if (topic->handle != NULL) {
        producer->topic_count++;
    }
    return topic->handle;
}

/* @return with the read lock held, whatever it finds. */
static rd_kafka_topic_t *lock_topic(struct pay_kafka_producer *producer, const char *name)
{
    (void)pthread_rwlock_rdlock(&producer->lock);
    rd_kafka_topic_t *handle = find_topic(producer, name);
    if (handle == NULL) {
        (void)pthread_rwlock_unlock(&producer->lock);
        (void)pthread_rwlock_wrlock(&producer->lock);
        handle = add_topic(producer, name);
        (void)pthread_rwlock_unlock(&producer->lock);
        (void)pthread_rwlock_rdlock(&producer->lock);
    }
    return handle;
}

static rd_kafka_headers_t *make_headers(const struct pay_kafka_headers *headers)
{
    rd_kafka_headers_t *made = rd_kafka_headers_new(headers->count);

    for (size_t i = 0; i < headers->count; i++) {
        const struct pay_kafka_header *item = &headers->items[i];
        /* Fails only for a list that is read only, which a new one is not. */
        (void)rd_kafka_header_add(made, item->name, -1, item->value.ptr, (ssize_t)item->value.len);
    }
    return made;
}

/* librdkafka only reads what it is given; its parameter lacks a const. */
static void *unconst(const void *bytes)
{
    union {
        const void *in;
        void *out;
    } pointer = {.in = bytes};

    return pointer.out;
}

static rd_kafka_resp_err_t enqueue(struct pay_kafka_producer *producer, rd_kafka_topic_t *topic,
                                   const struct pay_kafka_record *record)
{
    rd_kafka_headers_t *headers = NULL;

    if (record->headers != NULL && record->headers->count > 0) {
        headers = make_headers(record->headers);
    }
    rd_kafka_resp_err_t code = rd_kafka_producev(
        producer->rk, RD_KAFKA_V_RKT(topic),
        RD_KAFKA_V_MSGFLAGS(record->value_stays ? 0 : RD_KAFKA_MSG_F_COPY),
        RD_KAFKA_V_KEY(unconst(record->key.ptr), record->key.len),
        RD_KAFKA_V_VALUE(unconst(record->value.ptr), record->value.len),
        RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(record->tag), RD_KAFKA_V_END);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR && headers != NULL) {
        rd_kafka_headers_destroy(headers); /* Only a success takes them. */
    }
    return code;
}

enum pay_status pay_kafka_produce(struct pay_kafka_producer *producer,
                                  const struct pay_kafka_record *record, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    rd_kafka_topic_t *topic = lock_topic(producer, record->topic);

    if (producer->closing) {
        status = pay_err_set(err, PAY_RETRY, 0, "kafka produce", "producer is closing");
    } else if (topic == NULL) {
        status = pay_err_set(err, PAY_FATAL, 0, "kafka produce",
                             "topic name is too long or is one more than %d",
                             PAY_KAFKA_PRODUCER_TOPICS_MAX);
    } else {
        atomic_fetch_add(&producer->pending, 1); /* Before: the report may come first. */
        rd_kafka_resp_err_t code = enqueue(producer, topic, record);
        status = pay_kafka_produce_class(code, PAY_KAFKA_NOT_PERSISTED);
        if (status != PAY_OK) {
            atomic_fetch_sub(&producer->pending, 1);
            (void)pay_err_set(err, status, code, "kafka produce", "%s", pay_kafka_error_name(code));
        }
    }
    (void)pthread_rwlock_unlock(&producer->lock);
    return status;
}

size_t pay_kafka_producer_poll(struct pay_kafka_producer *producer, int timeout_ms)
{
    PAY_ASSERT(!producer->has_thread);
    return serve(producer, timeout_ms);
}

size_t pay_kafka_producer_pending(const struct pay_kafka_producer *producer)
{
    return atomic_load(&producer->pending);
}

/* ---- health ---- */

bool pay_kafka_producer_fatal(struct pay_kafka_producer *producer, struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_resp_err_t code = rd_kafka_fatal_error(producer->rk, why, sizeof why);

    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return false;
    }
    (void)pay_err_set(err, PAY_FATAL, code, "kafka producer", "%s: %s", pay_kafka_error_name(code),
                      why);
    return true;
}

enum pay_status pay_kafka_producer_ping(struct pay_kafka_producer *producer, int timeout_ms,
                                        struct pay_err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    enum pay_status status = pay_kafka_metadata(producer->rk, NULL, timeout_ms, &metadata, err);

    if (status == PAY_OK) {
        rd_kafka_metadata_destroy(metadata);
    }
    return status;
}

bool pay_kafka_producer_take_error(struct pay_kafka_producer *producer, struct pay_err *ret_err)
{
    return pay_kafka_note_take(&producer->note, ret_err);
}

static enum pay_status read_partitions(const struct rd_kafka_metadata *metadata,
                                       int32_t *ret_partitions, struct pay_err *err)
{
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART;

    if (metadata->topic_cnt == 1) {
        code = metadata->topics[0].err;
    }
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return pay_kafka_fail(err, "kafka partitions", code, rd_kafka_err2str(code));
    }
    *ret_partitions = metadata->topics[0].partition_cnt;
    return PAY_OK;
}

enum pay_status pay_kafka_producer_partitions(struct pay_kafka_producer *producer,
                                              const char *topic, int timeout_ms,
                                              int32_t *ret_partitions, struct pay_err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *handle = lock_topic(producer, topic);

    (void)pthread_rwlock_unlock(&producer->lock); /* Topics stay until the producer is freed. */
    if (handle == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "kafka partitions", "topic name is too long");
    }
    enum pay_status status = pay_kafka_metadata(producer->rk, handle, timeout_ms, &metadata, err);
    if (status == PAY_OK) {
        status = read_partitions(metadata, ret_partitions, err);
        rd_kafka_metadata_destroy(metadata);
    }
    return status;
}

/* ---- end ---- */

static void serve_until(struct pay_kafka_producer *producer, int timeout_ms)
{
    int64_t end_us = pay_clock_mono_us() + (int64_t)timeout_ms * 1000;

    while (pay_kafka_producer_pending(producer) > 0) {
        int64_t left_ms = (end_us - pay_clock_mono_us()) / 1000;
        if (left_ms <= 0) {
            return;
        }
        (void)serve(producer, left_ms < OWN_THREAD_TURN_MS ? (int)left_ms : OWN_THREAD_TURN_MS);
    }
}

size_t pay_kafka_producer_close(struct pay_kafka_producer *producer, int flush_ms)
{
    (void)pthread_rwlock_wrlock(&producer->lock); /* No produce call is under way after this. */
    producer->closing = true;
    (void)pthread_rwlock_unlock(&producer->lock);
    if (producer->has_thread) {
        atomic_store(&producer->stop_thread, true);
        (void)pthread_join(producer->thread, NULL);
        producer->has_thread = false;
    }
    producer->undelivered = 0;
    serve_until(producer, flush_ms);
    if (pay_kafka_producer_pending(producer) > 0) {
        (void)rd_kafka_purge(producer->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        serve_until(producer, PURGE_MS_MAX);
    }
    return producer->undelivered;
}

struct pay_kafka_producer *pay_kafka_producer_free(struct pay_kafka_producer *producer)
{
    if (producer == NULL) {
        return NULL;
    }
    if (producer->rk != NULL) {
        (void)pay_kafka_producer_close(producer, 0);
    }
    for (size_t i = 0; i < producer->topic_count; i++) {
        rd_kafka_topic_destroy(producer->topics[i].handle);
    }
    if (producer->rk != NULL) {
        rd_kafka_destroy(producer->rk);
    }
    (void)pthread_rwlock_destroy(&producer->lock);
    (void)pthread_mutex_destroy(&producer->note.lock);
    return pay_mem_free(producer);
}
