/* SPDX-License-Identifier: Apache-2.0 */
/** @file internal.h @brief The publisher's state, shared by its own files only. */
#ifndef PAY_PUBLISHER_INTERNAL_H
#define PAY_PUBLISHER_INTERNAL_H

#include <stdatomic.h>

#include "common/contracts/topics.h"
#include "common/io/kafka/kafka_producer.h"
#include "common/registry/outgoing.h"
#include "common/service/broker.h"
#include "common/store/relay.h"
#include "services/publisher/publisher.h"
#include "services/publisher/settings.h"
#include "services/publisher/window.h"

/** How events are framed where a schema registry is configured. */
struct pay_framing {
    struct pay_registry *registry; /**< NULL: none, events go out as they are. */
    struct pay_outgoing *ids;
    struct pay_buf value; /**< The event at hand. */
    bool is_wanted;       /**< Ask it: at start, and while an event waits for an id. */
    uint64_t waits_for;   /**< The fingerprint of that event's schema; 0: none waits. */
    bool is_noted;        /**< That it is away was logged. */
    int64_t due_us;       /**< Monotonic: not asked before. */
    atomic_bool ok;       /**< For /readyz. */
};

/** One leased shard. */
struct pay_shard {
    bool held;
    bool yielding; /**< More than our share: nothing new, and given back when nothing is on its way.
                    */
    bool sweeping; /**< What the cursor passed is not all read yet: nothing new is read before. */
    struct pay_relay_lease lease;
    int64_t until_us; /**< By the monotonic clock: from here on nothing is produced. */
    int64_t swept_id; /**< The sweep has come so far. */
    struct pay_window window;
};

/**
 * A topic whose records came back, by no fault of their own (no right to it, it is gone): one
 * record now and then tries whether it is mended, the others wait in hand, those of the other topic
 * go on.
 */
struct pay_held_topic {
    _Atomic int64_t due_us; /**< Monotonic: when the next record may try; 0: it is not held. */
    int64_t told_us;        /**< Monotonic: when it was logged last; 0: never. */
    bool is_told;           /**< Since it is held. */
};

struct pay_publisher {
    struct pay_service *svc;
    const struct pay_publisher_settings *cfg;
    struct pay_metric *metrics[PAY_PM_COUNT];
    struct pay_pg *pg;
    struct pay_pg_backoff pg_backoff;
    struct pay_relay relay;
    struct pay_kafka_producer *producer;
    char topics[PAY_TOPIC_COUNT][PAY_TOPIC_NAME_SIZE];
    struct pay_shard *shards; /**< shard_count entries. */
    int shard_count;
    int members;
    int held_count;   /**< Shards that are held. */
    bool has_leased;  /**< Once: leases under our name are our own from here on. */
    size_t row_bytes; /**< Of the rows that were read last, on average. */
    size_t in_flight;
    size_t delivered; /**< Acknowledged and not deleted; perhaps of shards that are gone. */
    int64_t delivered_since_us;
    size_t refused; /**< To be written back; perhaps of shards that are gone. */
    struct pay_metric_series *delivered_events, *delivered_jobs;
    int64_t database_due_us, lease_due_us, sweep_due_us, stats_due_us; /**< Monotonic. */
    int64_t rows_at_us;    /**< When rows were read last; monotonic. */
    int64_t pass_began_us; /**< The database's clock. */
    int64_t settled_id;    /**< Highest outbox id that was there when everything was read. */
    int64_t unsettled_id;  /**< A larger one was drawn but not seen yet ... */
    int64_t unsettled_since_us;
    atomic_bool pg_ok; /**< For /readyz. */
    struct pay_broker broker;
    struct pay_held_topic held_topics[2]; /**< Of events, of jobs: by a row's is_job. */
    struct pay_framing framing;
};

/** @brief Join, renew, take or give back shards. */
PAY_MUST_CHECK enum pay_status pay_publisher_lease(struct pay_publisher *pub, struct pay_err *err);
/** @brief Give back the shards that are more than our share and have nothing on its way. */
PAY_MUST_CHECK enum pay_status pay_publisher_yield(struct pay_publisher *pub, struct pay_err *err);
/** @brief Let go of every shard, and leave. */
PAY_MUST_CHECK enum pay_status pay_publisher_leave(struct pay_publisher *pub, struct pay_err *err);
/** @brief Forget a shard: rows in hand stay in the table for whoever holds it. */
void pay_publisher_drop_shard(struct pay_publisher *pub, struct pay_shard *shard);
/** @brief Read new rows (and, when due, what the cursor passed) into the windows. */
PAY_MUST_CHECK enum pay_status pay_publisher_read(struct pay_publisher *pub, struct pay_err *err);
/** @return a shard is to be given back. */
bool pay_publisher_is_yielding(const struct pay_publisher *pub);
/** @brief Delete what was acknowledged, if it is enough (or @p now), and write refusals back. */
PAY_MUST_CHECK enum pay_status pay_publisher_settle(struct pay_publisher *pub, bool now,
                                                    struct pay_err *err);
/** @return the part of @p whole that one of the shards we hold may take. */
size_t pay_publisher_part(const struct pay_publisher *pub, size_t whole);
/** @return a topic takes no records; any thread. */
bool pay_publisher_is_held(const struct pay_publisher *pub);
/** @brief Hand to the producer what may go. @return records produced. */
size_t pay_publisher_produce(struct pay_publisher *pub);
/** @brief Prepare the registry, if one is configured; it is not asked yet. */
PAY_MUST_CHECK enum pay_status pay_publisher_framing_open(struct pay_publisher *pub,
                                                          struct pay_err *err);
void pay_publisher_framing_close(struct pay_publisher *pub);
/** @brief Ask the registry when something is missing and it is time. May block for its time-out. */
void pay_publisher_framing_turn(struct pay_publisher *pub);
/**
 * @brief The bytes that go out for @p row, valid until the next call.
 * @return PAY_RETRY: the registry has not told the id yet, the row waits. PAY_REJECT: never.
 */
PAY_MUST_CHECK enum pay_status pay_publisher_frame(struct pay_publisher *pub,
                                                   const struct pay_outbox_row *row,
                                                   struct pay_bytes *ret_value,
                                                   struct pay_err *err);
/** The delivery report; pay_kafka_report_fn. */
void pay_publisher_report(void *ctx, const struct pay_kafka_report *report);

#endif /* PAY_PUBLISHER_INTERNAL_H */
