/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/log.h"

#include "common/base/banned.h"

void pay_publisher_drop_shard(struct pay_publisher *pub, struct pay_shard *shard)
{
    pub->in_flight -= shard->window.in_flight;
    pay_window_clear(&shard->window);
    pub->held_count -= shard->held ? 1 : 0;
    shard->held = shard->yielding = shard->sweeping = false;
}

static size_t held_leases(const struct pay_publisher *pub, struct pay_relay_lease *leases)
{
    size_t count = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        if (pub->shards[i].held) {
            leases[count++] = pub->shards[i].lease;
        }
    }
    return count;
}

static bool is_among(const struct pay_relay_lease *leases, size_t count, struct pay_relay_lease one)
{
    for (size_t i = 0; i < count; i++) {
        if (leases[i].shard == one.shard && leases[i].fence == one.fence) {
            return true;
        }
    }
    return false;
}

/* What another process has taken meanwhile is dropped, the rest gets its new end. */
static void keep(struct pay_publisher *pub, const struct pay_relay_lease *kept, size_t count,
                 int64_t until_us)
{
    for (int i = 0; i < pub->shard_count; i++) {
        struct pay_shard *shard = &pub->shards[i];
        if (shard->held && is_among(kept, count, shard->lease)) {
            shard->until_us = until_us;
        } else if (shard->held) {
            pay_log(PAY_LOG_WARN, "lease_lost", PAY_F_INT("shard", i));
            pay_metric_add(pub->metrics[PAY_PM_FENCED], NULL, 1);
            pay_publisher_drop_shard(pub, shard);
        }
    }
}

static size_t fair_share(const struct pay_publisher *pub)
{
    const size_t shards = (size_t)pub->shard_count;
    const size_t members = pub->members < 1 ? 1 : (size_t)pub->members;
    return (shards + members - 1) / members;
}

static enum pay_status take(struct pay_publisher *pub, size_t want, int64_t until_us,
                            struct pay_err *err)
{
    struct pay_relay_lease taken[PAY_RELAY_SHARDS_MAX];
    const struct pay_relay_wish wish = {pub->shard_count, want, !pub->has_leased};
    size_t count = 0;
    const enum pay_status status = pay_relay_take(&pub->relay, &wish, taken, &count, err);
    for (size_t i = 0; status == PAY_OK && i < count; i++) {
        struct pay_shard *shard = &pub->shards[taken[i].shard];
        pub->held_count += shard->held ? 0 : 1;
        shard->held = true;
        shard->lease = taken[i];
        shard->until_us = until_us;
        pay_log(PAY_LOG_INFO, "lease_taken", PAY_F_INT("shard", taken[i].shard),
                PAY_F_INT("fence", taken[i].fence));
    }
    if (status == PAY_OK && count > 0) {
        pub->settled_id = -1; /* New shards may hold old rows. */
    }
    pub->has_leased = pub->has_leased || status == PAY_OK;
    return status;
}

/* What is above our share takes nothing new from here on; a busy shard would never be idle. */
static void mark_surplus(struct pay_publisher *pub, size_t surplus)
{
    for (int i = pub->shard_count - 1; i >= 0; i--) {
        struct pay_shard *shard = &pub->shards[i];
        shard->yielding = shard->held && surplus > 0;
        surplus -= shard->yielding ? 1 : 0;
    }
}

bool pay_publisher_is_yielding(const struct pay_publisher *pub)
{
    bool is_yielding = false;
    for (int i = 0; i < pub->shard_count && !is_yielding; i++) {
        is_yielding = pub->shards[i].held && pub->shards[i].yielding;
    }
    return is_yielding;
}

enum pay_status pay_publisher_yield(struct pay_publisher *pub, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (int i = 0; i < pub->shard_count && status == PAY_OK; i++) {
        struct pay_shard *shard = &pub->shards[i];
        if (!shard->held || !shard->yielding || shard->window.in_flight > 0) {
            continue;
        }
        status = pay_relay_release(&pub->relay, shard->lease, err);
        pay_publisher_drop_shard(pub, shard);
        pay_log(PAY_LOG_INFO, "lease_given_back", PAY_F_INT("shard", i));
    }
    return status;
}

enum pay_status pay_publisher_lease(struct pay_publisher *pub, struct pay_err *err)
{
    /* Counted from before the statement, and shorter by a tenth: we stop before others may start.
     */
    const int64_t until_us = pay_clock_mono_us() + pub->cfg->lease_ms * 900;
    struct pay_relay_lease leases[PAY_RELAY_SHARDS_MAX];
    size_t count = held_leases(pub, leases);

    enum pay_status status = pay_relay_join(&pub->relay, &pub->members, err);
    if (status == PAY_OK && count > 0) {
        status = pay_relay_renew(&pub->relay, leases, &count, err);
        if (status == PAY_OK) {
            keep(pub, leases, count, until_us);
        }
    }
    const size_t share = fair_share(pub);
    if (status == PAY_OK) {
        mark_surplus(pub, count > share ? count - share : 0);
    }
    if (status == PAY_OK && count < share) {
        status = take(pub, share - count, until_us, err);
    }
    if (status == PAY_OK) {
        pay_metric_set(pub->metrics[PAY_PM_SHARDS], NULL, (int64_t)held_leases(pub, leases));
    }
    return status;
}

enum pay_status pay_publisher_leave(struct pay_publisher *pub, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (int i = 0; i < pub->shard_count && status == PAY_OK; i++) {
        struct pay_shard *shard = &pub->shards[i];
        if (shard->held) {
            status = pay_relay_release(&pub->relay, shard->lease, err);
            pay_publisher_drop_shard(pub, shard);
        }
    }
    if (status == PAY_OK) {
        status = pay_relay_leave(&pub->relay, err);
    }
    return status;
}
