/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ingest.h
 * @brief What the three roles of ingest share: accounts, keyring, metrics, topics, the way to
 * Kafka.
 *
 * Ownership: pay_ingest_start() makes it, pay_ingest_stop() ends it; the struct itself is static,
 * because /readyz looks at it to the end. Threads: everything here from any thread. Failure: start
 * only.
 */
#ifndef PAY_INGEST_INGEST_H
#define PAY_INGEST_INGEST_H

#include <stdatomic.h>

#include "common/accounts/accounts.h"
#include "common/contracts/topics.h"
#include "common/service/broker.h"
#include "services/ingest/keys.h"
#include "services/ingest/outlet.h"
#include "services/ingest/settings.h"

struct pay_ingest {
    struct pay_service *svc;
    const struct pay_ingest_settings *cfg;
    struct pay_metric *metrics[PAY_IM_COUNT];
    struct pay_accounts_store *accounts;
    struct pay_keys *keys;
    struct pay_outlet *outlet;
    struct pay_broker broker; /**< For /readyz: needs no outlet. */
    atomic_bool role_started; /**< The role listens, or has its consumer; for /readyz. */
    char topics[PAY_TOPIC_COUNT][PAY_TOPIC_NAME_SIZE];
};

/** What one thread has for itself to make records with. */
struct pay_desk {
    struct pay_ingest *ingest;
    struct pay_codec *codec;
    struct pay_arena *arena; /**< Reset by the owner before each piece of work. */
    struct pay_buf value;    /**< One encoded record. */
};
PAY_MUST_CHECK enum pay_status pay_desk_make(struct pay_desk *desk, struct pay_ingest *ingest,
                                             size_t arena_bytes_max, struct pay_err *err);
/** Copes with a half-made one. */
void pay_desk_free(struct pay_desk *desk);

PAY_MUST_CHECK enum pay_status pay_ingest_start(struct pay_ingest *ingest, struct pay_service *svc,
                                                struct pay_err *err);
/** @brief Flushes what is on its way, bounded by the drain. Copes with a half-made one. */
void pay_ingest_stop(struct pay_ingest *ingest);
/** @brief Look for changed accounts, secrets and keyring; each role's main loop calls it. */
void pay_ingest_refresh(struct pay_ingest *ingest);

/** @brief A record's headers: the trace context, where there is one. @return NULL: none. */
const struct pay_kafka_headers *pay_ingest_headers(struct pay_kafka_headers *headers,
                                                   struct pay_str traceparent);

/** For --check-config: accounts, keyring, and what the role needs. */
enum pay_status pay_ingest_check(const char *role, struct pay_err *err);

/* The roles; each runs until the service drains. */
enum pay_status pay_ingest_webhook(struct pay_ingest *ingest, struct pay_err *err);
enum pay_status pay_ingest_relay(struct pay_ingest *ingest, struct pay_err *err);
enum pay_status pay_ingest_psp(struct pay_ingest *ingest, struct pay_err *err);

#endif /* PAY_INGEST_INGEST_H */
