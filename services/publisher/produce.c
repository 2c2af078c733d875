/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include "common/base/banned.h"

#define HELD_US INT64_C(500000)
#define TOLD_US INT64_C(10000000)
#define SHOWN_US INT64_C(5000000)

static const char *topic_of(const struct pay_publisher *pub, const struct pay_outbox_row *row)
{
    return pub->topics[row->is_job ? PAY_TOPIC_PSP_JOBS : PAY_TOPIC_EVENTS];
}

static void hold_topic(struct pay_publisher *pub, const struct pay_outbox_row *row,
                       const char *reason)
{
    struct pay_held_topic *held = &pub->held_topics[row->is_job];
    const int64_t now_us = pay_clock_mono_us();
    if (held->told_us == 0 || now_us - held->told_us >= TOLD_US) {
        pay_log(PAY_LOG_WARN, "topic_held", PAY_F_STR("topic", topic_of(pub, row)),
                PAY_F_STR("reason", reason));
        held->told_us = now_us;
        held->is_told = true;
    }
    atomic_store(&held->due_us, now_us + HELD_US);
}

static void free_topic(struct pay_publisher *pub, const struct pay_outbox_row *row)
{
    struct pay_held_topic *held = &pub->held_topics[row->is_job];
    atomic_store(&held->due_us, 0);
    if (held->is_told) {
        pay_log(PAY_LOG_INFO, "topic_free", PAY_F_STR("topic", topic_of(pub, row)));
        held->is_told = false;
    }
}

/* One record tries; the next one when its report is late. */
static bool may_try(struct pay_publisher *pub, const struct pay_outbox_row *row)
{
    struct pay_held_topic *held = &pub->held_topics[row->is_job];
    const int64_t due_us = atomic_load(&held->due_us);
    if (due_us == 0) {
        return true;
    }
    const int64_t now_us = pay_clock_mono_us();
    if (now_us < due_us) {
        return false;
    }
    atomic_store(&held->due_us, now_us + HELD_US);
    return true;
}

/* Where no record has tried for a while there is none any more: its shard is another's. */
static bool is_held(const struct pay_held_topic *held)
{
    const int64_t due_us = atomic_load(&held->due_us);
    return due_us != 0 && pay_clock_mono_us() - due_us < SHOWN_US;
}

bool pay_publisher_is_held(const struct pay_publisher *pub)
{
    return is_held(&pub->held_topics[0]) || is_held(&pub->held_topics[1]);
}

static struct pay_shard *shard_of(struct pay_publisher *pub, const struct pay_outbox_row *row)
{
    return &pub->shards[row->shard];
}

static void note_delivered(struct pay_publisher *pub, const struct pay_outbox_row *row)
{
    if (pub->delivered++ == 0) {
        pub->delivered_since_us = pay_clock_mono_us();
    }
    struct pay_metric_series **series = row->is_job ? &pub->delivered_jobs : &pub->delivered_events;
    if (*series == NULL) { /* Shown from the first one on. */
        *series = pay_metric_with(pub->metrics[PAY_PM_DELIVERED],
                                  (const char *const[]){row->is_job ? "psp-jobs" : "events"});
    }
    pay_series_add(*series, 1);
    pay_metric_observe(pub->metrics[PAY_PM_RELAY_SECONDS], NULL,
                       pay_clock_wall_us() - row->created_at_us);
}

void pay_publisher_report(void *ctx, const struct pay_kafka_report *report)
{
    struct pay_publisher *pub = ctx;
    struct pay_outbox_row *row = report->tag;
    if (report->status == PAY_OK) {
        pay_broker_shown(&pub->broker);
        free_topic(pub, row);
    }
    if (row->orphaned) { /* Its shard was given up; who holds it now reads the row again. */
        pay_outbox_row_free(row);
        return;
    }
    pub->in_flight--;
    shard_of(pub, row)->window.in_flight--;
    switch (report->status) {
    case PAY_OK:
        row->state = PAY_ROW_DELIVERED;
        note_delivered(pub, row);
        break;
    case PAY_REJECT:
        row->state = PAY_ROW_REFUSED;
        row->reason = report->reason;
        pub->refused++;
        break;
    default: /* Not sure, or sure that it was not taken: again. Consumers know the event id. */
        row->state = PAY_ROW_WAITING;
        shard_of(pub, row)->window.waiting++;
        pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"kafka"}, 1);
        if (pay_service_mode(pub->svc) == PAY_SERVICE_RUNNING) { /* else called back by the drain */
            hold_topic(pub, row, report->reason);
        }
        break;
    }
}

static bool add_headers(const struct pay_outbox_row *row, struct pay_kafka_headers *headers)
{
    bool all = true;
    for (size_t i = 0; i < row->header_count; i++) {
        all = all &&
              pay_kafka_headers_add_str(headers, row->headers[2 * i].ptr, row->headers[2 * i + 1]);
    }
    return all;
}

static enum pay_status produce_row(struct pay_publisher *pub, struct pay_outbox_row *row,
                                   struct pay_bytes value, struct pay_err *err)
{
    struct pay_kafka_headers headers = {.count = 0};
    if (!add_headers(row, &headers)) {
        return pay_err_set(err, PAY_REJECT, 0, "produce", "too many headers");
    }
    const struct pay_kafka_record record = {
        .topic = topic_of(pub, row),
        .key = row->key,
        .value = value,
        .headers = &headers,
        .tag = row,
        .value_stays = value.ptr == row->payload.ptr, /* The row lives until its report. */
    };
    return pay_kafka_produce(pub->producer, &record, err);
}

/* @return false: the producer takes no more now. */
static bool produce_one(struct pay_publisher *pub, struct pay_shard *shard,
                        struct pay_outbox_row *row)
{
    struct pay_err err = {.status = PAY_OK};
    struct pay_bytes value;
    if (!may_try(pub, row)) {
        return true;
    }
    enum pay_status status = pay_publisher_frame(pub, row, &value, &err);
    if (status == PAY_RETRY) {
        return true; /* It stays waiting, and holds its payment; others go on. */
    }
    if (status == PAY_OK) {
        status = produce_row(pub, row, value, &err);
    }
    if (status == PAY_OK) {
        row->state = PAY_ROW_IN_FLIGHT;
        shard->window.waiting--;
        shard->window.in_flight++;
        pub->in_flight++;
        return true;
    }
    if (status == PAY_REJECT) {
        row->state = PAY_ROW_REFUSED;
        shard->window.waiting--;
        row->reason = err.code == 0 ? "INVALID" : pay_kafka_error_name(err.code);
        pub->refused++;
        return true;
    }
    if (status == PAY_RETRY && err.code != 0 && !pay_kafka_is_full(err.code)) {
        pay_metric_add(pub->metrics[PAY_PM_ERRORS], (const char *const[]){"kafka"}, 1);
        hold_topic(pub, row, pay_kafka_error_name(err.code));
        return true;
    }
    return false;
}

/* Each shard has its part, so that one whose leader is away does not hold up the others. */
static size_t free_slots(const struct pay_publisher *pub, const struct pay_shard *shard)
{
    const size_t part = pay_publisher_part(pub, (size_t)pub->cfg->in_flight_max);
    const size_t slots = part > 0 ? part : 1;
    const size_t in_flight = shard->window.in_flight;
    return in_flight < slots ? slots - in_flight : 0;
}

size_t pay_publisher_produce(struct pay_publisher *pub)
{
    struct pay_outbox_row *ready[PAY_WINDOW_ROWS_MAX];
    size_t produced = 0;
    bool room = true;
    for (int i = 0; i < pub->shard_count && room; i++) {
        struct pay_shard *shard = &pub->shards[i];
        if (!shard->held || shard->yielding || shard->window.waiting == 0) {
            continue;
        }
        if (pay_clock_mono_us() >= shard->until_us) {
            continue; /* The lease may be another's by now. */
        }
        const size_t count = pay_window_ready(&shard->window, ready, free_slots(pub, shard));
        for (size_t j = 0; j < count && room; j++) {
            room = produce_one(pub, shard, ready[j]);
            produced += room ? 1 : 0;
        }
    }
    return produced;
}
