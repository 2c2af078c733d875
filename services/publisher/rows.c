/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/service/backoff.h"

#include "common/base/banned.h"

#define SKIP_IDS_MAX ((size_t)65536)
/* An id that was drawn and has not been seen for so long was rolled back: the sweep would find it.
 */
#define UNSETTLED_US_MAX INT64_C(2000000)

static struct pay_str copy_free_text(struct pay_pg_array *array)
{
    const struct pay_str text = pay_pg_array_text(array);
    return text.ptr == NULL ? PAY_STR("") : text;
}

static void read_headers(const struct pay_pg_result *rows, size_t at, struct pay_outbox_row *row)
{
    struct pay_pg_array array = pay_pg_array_of(rows, at, PAY_RELAY_HEADERS);
    while (array.count >= 2 && row->header_count < PAY_ROW_HEADERS_MAX) {
        row->headers[2 * row->header_count] = copy_free_text(&array);
        row->headers[2 * row->header_count + 1] = copy_free_text(&array);
        row->header_count++;
    }
}

static enum pay_status take_rows(struct pay_publisher *pub, const struct pay_pg_result *rows,
                                 struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < pay_pg_rows(rows) && status == PAY_OK; i++) {
        struct pay_outbox_row row = {.shard = (int)pay_pg_int(rows, i, PAY_RELAY_SHARD)};
        struct pay_shard *shard = &pub->shards[row.shard];
        if (!shard->held || shard->window.count == PAY_WINDOW_ROWS_MAX) {
            continue; /* Found again by the sweep. */
        }
        row.id = pay_pg_int(rows, i, PAY_RELAY_ID);
        row.fence = shard->lease.fence;
        row.is_job = pay_str_eq_c(pay_pg_text(rows, i, PAY_RELAY_TOPIC), "psp-jobs");
        row.key = pay_pg_text(rows, i, PAY_RELAY_KEY);
        row.payload = pay_pg_bytea(rows, i, PAY_RELAY_PAYLOAD);
        row.attempts = (int)pay_pg_int(rows, i, PAY_RELAY_ATTEMPTS);
        row.created_at_us = pay_pg_timestamptz(rows, i, PAY_RELAY_CREATED_AT);
        read_headers(rows, i, &row);
        status = pay_window_add(&shard->window, &row, err);
    }
    return status;
}

/* Room for at least one more read in every window that is asked. */
static size_t make_ranges(struct pay_publisher *pub, bool sweep, struct pay_relay_range *ranges)
{
    size_t count = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        const struct pay_shard *shard = &pub->shards[i];
        const size_t room = PAY_WINDOW_ROWS_MAX - shard->window.count;
        if (!shard->held || room < (size_t)pub->cfg->read_rows_max) {
            continue;
        }
        ranges[count++] = (struct pay_relay_range){i, sweep ? 0 : shard->window.cursor,
                                                   sweep ? shard->window.cursor : INT64_MAX};
    }
    return count;
}

static size_t ids_in_hand(const struct pay_publisher *pub, int64_t *ids, size_t cap)
{
    size_t count = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        const struct pay_window *window = &pub->shards[i].window;
        for (size_t j = 0; j < window->count && count < cap; j++) {
            ids[count++] = window->rows[j]->id;
        }
    }
    return count;
}

static enum pay_status read_ranges(struct pay_publisher *pub, bool sweep, size_t *ret_rows,
                                   struct pay_err *err)
{
    struct pay_relay_range ranges[PAY_RELAY_SHARDS_MAX];
    const size_t count = make_ranges(pub, sweep, ranges);
    *ret_rows = 0;
    if (count == 0) {
        return PAY_OK;
    }
    int64_t *skip = sweep ? pay_mem_new(SKIP_IDS_MAX, sizeof *skip) : NULL;
    if (sweep && skip == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "sweep", "out of memory");
    }
    const size_t skipped = sweep ? ids_in_hand(pub, skip, SKIP_IDS_MAX) : 0;
    const struct pay_relay_request request = {ranges, count, skip, skipped,
                                              (int)pub->cfg->read_rows_max};
    struct pay_pg_result *rows = NULL;
    enum pay_status status = pay_relay_read(&pub->relay, &request, &rows, err);
    if (status == PAY_OK) {
        *ret_rows = pay_pg_rows(rows);
        status = take_rows(pub, rows, err);
    }
    pay_pg_result_free(rows);
    pay_mem_free(skip);
    return status;
}

/* Nothing was added since everything was read: the cheapest look there is. */
static enum pay_status is_idle(struct pay_publisher *pub, int64_t *ret_last_id, bool *ret_idle,
                               struct pay_err *err)
{
    const enum pay_status status = pay_relay_last_id(&pub->relay, ret_last_id, err);
    *ret_idle = status == PAY_OK && *ret_last_id == pub->settled_id;
    return status;
}

/* The sequence is drawn before the commit, so a number without a row means: look again. */
static void note_read(struct pay_publisher *pub, int64_t last_id, size_t rows)
{
    const int64_t now_us = pay_clock_mono_us();
    int64_t seen = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        const struct pay_shard *shard = &pub->shards[i];
        seen = shard->held && shard->window.cursor > seen ? shard->window.cursor : seen;
    }
    if (rows > 0 || last_id != pub->unsettled_id) {
        pub->unsettled_id = last_id;
        pub->unsettled_since_us = now_us;
    }
    if (rows == 0 && (seen >= last_id || now_us - pub->unsettled_since_us > UNSETTLED_US_MAX)) {
        pub->settled_id = last_id;
    }
}

enum pay_status pay_publisher_read(struct pay_publisher *pub, struct pay_err *err)
{
    size_t rows = 0;
    const int64_t now_us = pay_clock_mono_us();
    if (now_us >= pub->sweep_due_us) {
        pub->sweep_due_us = now_us + pub->cfg->sweep_ms * 1000;
        const enum pay_status status = read_ranges(pub, true, &rows, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    int64_t last_id = 0;
    bool idle = false;
    enum pay_status status = is_idle(pub, &last_id, &idle, err);
    if (status == PAY_OK && !idle) {
        status = read_ranges(pub, false, &rows, err);
        if (status == PAY_OK) {
            note_read(pub, last_id, rows);
        }
    }
    return status;
}

static enum pay_status delete_delivered(struct pay_publisher *pub, struct pay_shard *shard,
                                        struct pay_err *err)
{
    int64_t ids[PAY_WINDOW_ROWS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < shard->window.count; i++) {
        if (shard->window.rows[i]->state == PAY_ROW_DELIVERED) {
            ids[count++] = shard->window.rows[i]->id;
        }
    }
    if (count == 0) {
        return PAY_OK;
    }
    int64_t deleted = 0;
    const enum pay_status status =
        pay_relay_delete(&pub->relay, shard->lease, ids, count, &deleted, err);
    if (status == PAY_OK && deleted == 0) {
        pay_log(PAY_LOG_WARN, "fenced", PAY_F_INT("shard", shard->lease.shard));
        pay_metric_add(pub->metrics[PAY_PM_FENCED], NULL, 1);
        pay_publisher_drop_shard(pub, shard);
    } else if (status == PAY_OK) {
        (void)pay_window_drop(&shard->window, PAY_ROW_DELIVERED);
    }
    return status;
}

static enum pay_status write_refusal(struct pay_publisher *pub, const struct pay_shard *shard,
                                     const struct pay_outbox_row *row, struct pay_err *err)
{
    const struct pay_backoff backoff = {pub->cfg->refuse_first_ms, pub->cfg->refuse_max_ms};
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
    const enum pay_status status = pay_relay_refuse(&pub->relay, &refusal, &dead, err);
    if (status == PAY_OK) {
        pay_metric_add(pub->metrics[PAY_PM_REFUSED], (const char *const[]){row->reason}, 1);
        pay_log(PAY_LOG_WARN, dead ? "outbox_dead" : "outbox_refused",
                PAY_F_STR("payment_id", row->key.ptr), PAY_F_INT("outbox_id", row->id),
                PAY_F_STR("reason", row->reason));
    }
    if (status == PAY_OK && dead) {
        pay_metric_add(pub->metrics[PAY_PM_DEAD], NULL, 1);
    }
    return status;
}

/* What waits behind a refused row is dropped from the window: the read leaves its key out. */
static void drop_key(struct pay_window *window, uint64_t key_hash)
{
    for (size_t i = 0; i < window->count; i++) {
        struct pay_outbox_row *row = window->rows[i];
        if (row->key_hash == key_hash && row->state == PAY_ROW_WAITING) {
            row->state = PAY_ROW_REFUSED;
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
        const enum pay_status status = write_refusal(pub, shard, row, err);
        if (status != PAY_OK) {
            return status;
        }
        row->reason = NULL;
        drop_key(&shard->window, row->key_hash);
    }
    if (refused > 0) {
        (void)pay_window_drop(&shard->window, PAY_ROW_REFUSED);
    }
    return PAY_OK;
}

enum pay_status pay_publisher_settle(struct pay_publisher *pub, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    for (int i = 0; i < pub->shard_count && status == PAY_OK; i++) {
        struct pay_shard *shard = &pub->shards[i];
        if (shard->held) {
            status = delete_delivered(pub, shard, err);
        }
        if (shard->held && status == PAY_OK) {
            status = write_refusals(pub, shard, err);
        }
    }
    return status;
}
