/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/service/backoff.h"

#include "common/base/banned.h"

/* A delete is a commit: it waits for so many rows, or so long, or for the end of what is on its
 * way. */
#define DELETE_ROWS ((size_t)1000)
#define DELETE_US_MAX INT64_C(20000)

/* Another process has taken the shard: what is in hand of it is that one's. */
static void fenced(struct pay_publisher *pub, struct pay_shard *shard)
{
    pay_log(PAY_LOG_WARN, "fenced", PAY_F_INT("shard", shard->lease.shard));
    pay_metric_add(pub->metrics[PAY_PM_FENCED], NULL, 1);
    pay_publisher_drop_shard(pub, shard);
}

/* Rows of whole shards: after the delete a shard has none that was acknowledged. */
struct batch {
    struct pay_relay_lease leases[PAY_RELAY_SHARDS_MAX];
    size_t lease_count;
    int64_t shards[PAY_WINDOW_ROWS_MAX], ids[PAY_WINDOW_ROWS_MAX];
    uint64_t tids[PAY_WINDOW_ROWS_MAX];
    size_t count;
};

static size_t count_delivered(const struct pay_window *window)
{
    size_t count = 0;
    for (size_t i = 0; i < window->count; i++) {
        count += window->rows[i]->state == PAY_ROW_DELIVERED ? 1 : 0;
    }
    return count;
}

static void add_delivered(struct batch *batch, const struct pay_shard *shard)
{
    batch->leases[batch->lease_count++] = shard->lease;
    for (size_t i = 0; i < shard->window.count; i++) {
        if (shard->window.rows[i]->state == PAY_ROW_DELIVERED) {
            batch->shards[batch->count] = shard->lease.shard;
            batch->tids[batch->count] = shard->window.rows[i]->tid;
            batch->ids[batch->count++] = shard->window.rows[i]->id;
        }
    }
}

/* @return where to go on: the first shard whose rows are not in the batch. */
static int fill_batch(const struct pay_publisher *pub, int from, struct batch *batch)
{
    batch->lease_count = 0;
    batch->count = 0;
    for (int i = from; i < pub->shard_count; i++) {
        const struct pay_shard *shard = &pub->shards[i];
        const size_t delivered = shard->held ? count_delivered(&shard->window) : 0;
        if (batch->count + delivered > PAY_WINDOW_ROWS_MAX) {
            return i;
        }
        if (delivered > 0) {
            add_delivered(batch, shard);
        }
    }
    return pub->shard_count;
}

static bool is_ours(const struct pay_relay_lease *ours, size_t count, struct pay_relay_lease lease)
{
    bool found = false;
    for (size_t i = 0; i < count && !found; i++) {
        found = ours[i].shard == lease.shard && ours[i].fence == lease.fence;
    }
    return found;
}

static enum pay_status delete_batch(struct pay_publisher *pub, const struct batch *batch,
                                    struct pay_err *err)
{
    struct pay_relay_lease ours[PAY_RELAY_SHARDS_MAX];
    size_t count = 0;
    const struct pay_relay_delivered delivered = {
        .leases = batch->leases,
        .lease_count = batch->lease_count,
        .shards = batch->shards,
        .ids = batch->ids,
        .tids = batch->tids,
        .count = batch->count,
    };
    PAY_FAULT("after_delivery_before_delete");
    const enum pay_status status = pay_relay_delete(&pub->relay, &delivered, ours, &count, err);
    for (size_t i = 0; status == PAY_OK && i < batch->lease_count; i++) {
        struct pay_shard *shard = &pub->shards[batch->leases[i].shard];
        if (is_ours(ours, count, batch->leases[i])) {
            (void)pay_window_drop(&shard->window, PAY_ROW_DELIVERED);
        } else {
            fenced(pub, shard);
        }
    }
    return status;
}

static enum pay_status delete_delivered(struct pay_publisher *pub, struct pay_err *err)
{
    struct batch batch;
    enum pay_status status = PAY_OK;
    int at = 0;
    while (at < pub->shard_count && status == PAY_OK) {
        at = fill_batch(pub, at, &batch);
        status = batch.count > 0 ? delete_batch(pub, &batch, err) : PAY_OK;
    }
    pub->delivered = status == PAY_OK ? 0 : pub->delivered;
    return status;
}

/* What was acknowledged is deleted by the hundred; the rest of it when nothing else is on its way.
 */
static bool is_delete_due(const struct pay_publisher *pub)
{
    return pub->delivered >= DELETE_ROWS ||
           (pub->delivered > 0 && (pub->in_flight == 0 ||
                                   pay_clock_mono_us() - pub->delivered_since_us >= DELETE_US_MAX));
}

static void note_refusal(struct pay_publisher *pub, const struct pay_outbox_row *row, bool dead)
{
    pay_metric_add(pub->metrics[PAY_PM_REFUSED], (const char *const[]){row->reason}, 1);
    pay_log(dead ? PAY_LOG_ERROR : PAY_LOG_WARN, dead ? "outbox_dead" : "outbox_refused",
            PAY_F_STR("payment_id", row->key.ptr), PAY_F_INT("outbox_id", row->id),
            PAY_F_STR("reason", row->reason));
    if (dead) {
        pay_metric_add(pub->metrics[PAY_PM_DEAD], NULL, 1);
    }
}

static enum pay_status write_refusal(struct pay_publisher *pub, const struct pay_shard *shard,
                                     const struct pay_outbox_row *row, bool *ret_ours,
                                     struct pay_err *err)
{
    const struct pay_backoff backoff = {pub->cfg->refuse_first_ms,
                                        pub->cfg->refuse_max_ms > pub->cfg->refuse_first_ms
                                            ? pub->cfg->refuse_max_ms
                                            : pub->cfg->refuse_first_ms};
    uint64_t random = 0;
    pay_mem_random(&random, sizeof random);
    const struct pay_relay_refusal refusal = {
        .lease = shard->lease,
        .id = row->id,
        .reason = row->reason,
        .delay_ms = (int)pay_backoff_ms(&backoff, (unsigned)row->attempts, random),
        .attempts_max = (int)pub->cfg->refusals_max,
    };
    bool dead = false;
    const enum pay_status status = pay_relay_refuse(&pub->relay, &refusal, ret_ours, &dead, err);
    if (status == PAY_OK && *ret_ours) {
        note_refusal(pub, row, dead);
    }
    return status;
}

/* What waits behind a refused row is dropped from the window: the read leaves its key out. */
static void drop_key(struct pay_window *window, struct pay_str key)
{
    for (size_t i = 0; i < window->count; i++) {
        struct pay_outbox_row *row = window->rows[i];
        if (row->state == PAY_ROW_WAITING && pay_str_eq(row->key, key)) {
            row->state = PAY_ROW_REFUSED;
            window->waiting--;
            row->reason = NULL;
        }
    }
}

static enum pay_status write_refusals(struct pay_publisher *pub, struct pay_shard *shard,
                                      struct pay_err *err)
{
    size_t refused = 0;
    for (size_t i = 0; i < shard->window.count; i++) {
        struct pay_outbox_row *row = shard->window.rows[i];
        if (row->state != PAY_ROW_REFUSED) {
            continue;
        }
        refused++;
        if (row->reason == NULL) {
            continue;
        }
        bool ours = false;
        const enum pay_status status = write_refusal(pub, shard, row, &ours, err);
        if (status != PAY_OK) {
            return status;
        }
        if (!ours) {
            fenced(pub, shard);
            return PAY_OK;
        }
        row->reason = NULL;
        drop_key(&shard->window, row->key);
    }
    if (refused > 0) {
        (void)pay_window_drop(&shard->window, PAY_ROW_REFUSED);
    }
    return PAY_OK;
}

enum pay_status pay_publisher_settle(struct pay_publisher *pub, bool now, struct pay_err *err)
{
    const bool is_due = is_delete_due(pub) || (now && pub->delivered > 0);
    enum pay_status status = is_due ? delete_delivered(pub, err) : PAY_OK;
    for (int i = 0; i < pub->shard_count && status == PAY_OK && pub->refused > 0; i++) {
        if (pub->shards[i].held) {
            status = write_refusals(pub, &pub->shards[i], err);
        }
    }
    pub->refused = status == PAY_OK ? 0 : pub->refused;
    return status;
}
