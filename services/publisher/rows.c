/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/service/backoff.h"

#include "common/base/banned.h"

#define ROWS_IN_HAND_MAX ((size_t)65536) /* Over all shards; more stay in the table. */
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

/* What one read asks for. */
struct wanted {
    struct pay_relay_range ranges[PAY_RELAY_SHARDS_MAX];
    size_t range_count;
    int64_t *skip_ids; /* Sweep: what is in hand of those shards. */
    size_t skip_count;
};

static size_t rows_in_hand(const struct pay_publisher *pub)
{
    size_t count = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        count += pub->shards[i].window.count;
    }
    return count;
}

static bool wants_read(const struct pay_publisher *pub, const struct pay_shard *shard, bool sweep)
{
    const size_t room = PAY_WINDOW_ROWS_MAX - shard->window.count;
    return shard->held && !shard->yielding && shard->sweeping == sweep &&
           room >= (size_t)pub->cfg->read_rows_max;
}

static void add_range(struct wanted *wanted, const struct pay_shard *shard, bool sweep)
{
    const struct pay_window *window = &shard->window;
    wanted->ranges[wanted->range_count++] =
        (struct pay_relay_range){shard->lease.shard, sweep ? shard->swept_id : window->cursor,
                                 sweep ? window->cursor : INT64_MAX};
    for (size_t i = 0; sweep && i < window->count; i++) {
        wanted->skip_ids[wanted->skip_count++] = window->rows[i]->id;
    }
}

/* As many shards as have room, in turn, while all rows in hand stay below their maximum. */
static void choose(struct pay_publisher *pub, bool sweep, struct wanted *wanted)
{
    const size_t limit = (size_t)pub->cfg->read_rows_max;
    size_t rows = rows_in_hand(pub);
    int last = pub->next_shard;
    for (int i = 0; i < pub->shard_count && rows + limit <= ROWS_IN_HAND_MAX; i++) {
        const int at = (pub->next_shard + i) % pub->shard_count;
        if (wants_read(pub, &pub->shards[at], sweep)) {
            add_range(wanted, &pub->shards[at], sweep);
            rows += limit;
            last = (at + 1) % pub->shard_count;
        }
    }
    pub->next_shard = last;
}

/* A shard whose read came back short is swept to its cursor. */
static void note_swept(struct pay_publisher *pub, const struct wanted *wanted,
                       const struct pay_pg_result *rows)
{
    size_t counts[PAY_RELAY_SHARDS_MAX] = {0};
    for (size_t row = 0; row < pay_pg_rows(rows); row++) {
        const int64_t at = pay_pg_int(rows, row, PAY_RELAY_SHARD);
        const int64_t id = pay_pg_int(rows, row, PAY_RELAY_ID);
        pub->shards[at].swept_id = id > pub->shards[at].swept_id ? id : pub->shards[at].swept_id;
        counts[at]++;
    }
    for (size_t i = 0; i < wanted->range_count; i++) {
        const int at = wanted->ranges[i].shard;
        pub->shards[at].sweeping = counts[at] == (size_t)pub->cfg->read_rows_max;
    }
}

static enum pay_status read_wanted(struct pay_publisher *pub, bool sweep,
                                   const struct wanted *wanted, size_t *ret_rows,
                                   struct pay_err *err)
{
    const struct pay_relay_request request = {
        .ranges = wanted->ranges,
        .range_count = wanted->range_count,
        .skip_ids = wanted->skip_ids,
        .skip_count = wanted->skip_count,
        .limit = (int)pub->cfg->read_rows_max,
        .pass_began_us = pub->pass_began_us,
    };
    struct pay_pg_result *rows = NULL;
    enum pay_status status = pay_relay_read(&pub->relay, &request, &rows, err);
    if (status == PAY_OK) {
        *ret_rows = pay_pg_rows(rows);
        pub->rows_at_us = *ret_rows > 0 ? pay_clock_mono_us() : pub->rows_at_us;
        status = take_rows(pub, rows, err);
    }
    if (status == PAY_OK && sweep) { /* Else the same part is swept again: what is in hand stays. */
        note_swept(pub, wanted, rows);
    }
    pay_pg_result_free(rows);
    return status;
}

static enum pay_status read_shards(struct pay_publisher *pub, bool sweep, size_t *ret_rows,
                                   struct pay_err *err)
{
    struct wanted wanted = {.range_count = 0};
    *ret_rows = 0;
    if (sweep) {
        wanted.skip_ids = pay_mem_new(ROWS_IN_HAND_MAX, sizeof *wanted.skip_ids);
        if (wanted.skip_ids == NULL) {
            return pay_err_set(err, PAY_RETRY, 0, "sweep", "out of memory");
        }
    }
    choose(pub, sweep, &wanted);
    const enum pay_status status =
        wanted.range_count == 0 ? PAY_OK : read_wanted(pub, sweep, &wanted, ret_rows, err);
    pay_mem_free(wanted.skip_ids);
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

/* A new pass over the outbox from its start. It also reads what lies behind the cursors, however
 * long ago its number was drawn: a row that was committed late is found whatever the sequence says.
 */
static void begin_pass(struct pay_publisher *pub, int64_t now_us, int64_t database_us)
{
    pub->sweep_due_us = now_us + pub->cfg->sweep_ms * 1000;
    pub->pass_began_us = database_us;
    pub->settled_id = -1;
    for (int i = 0; i < pub->shard_count; i++) {
        struct pay_shard *shard = &pub->shards[i];
        shard->swept_id = 0;
        shard->sweeping = shard->held && shard->window.cursor > 0;
    }
}

static bool is_sweeping(const struct pay_publisher *pub)
{
    bool sweeping = false;
    for (int i = 0; i < pub->shard_count; i++) {
        sweeping = sweeping || (pub->shards[i].held && pub->shards[i].sweeping);
    }
    return sweeping;
}

enum pay_status pay_publisher_read(struct pay_publisher *pub, struct pay_err *err)
{
    int64_t last_id = 0;
    int64_t database_us = 0;
    size_t rows = 0;
    const int64_t now_us = pay_clock_mono_us();
    enum pay_status status = pay_relay_last_id(&pub->relay, &last_id, &database_us, err);
    if (status != PAY_OK) {
        return status;
    }
    if (now_us >= pub->sweep_due_us) {
        begin_pass(pub, now_us, database_us);
    }
    if (is_sweeping(pub)) {
        status = read_shards(pub, true, &rows, err);
    }
    if (status == PAY_OK && last_id != pub->settled_id) { /* Else nothing was added: all is read. */
        status = read_shards(pub, false, &rows, err);
        if (status == PAY_OK) {
            note_read(pub, last_id, rows);
        }
    }
    return status;
}

/* Another process has taken the shard: what is in hand of it is that one's. */
static void fenced(struct pay_publisher *pub, struct pay_shard *shard)
{
    pay_log(PAY_LOG_WARN, "fenced", PAY_F_INT("shard", shard->lease.shard));
    pay_metric_add(pub->metrics[PAY_PM_FENCED], NULL, 1);
    pay_publisher_drop_shard(pub, shard);
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
    PAY_FAULT("after_delivery_before_delete");
    bool ours = false;
    const enum pay_status status =
        pay_relay_delete(&pub->relay, shard->lease, ids, count, &ours, err);
    if (status == PAY_OK && ours) {
        (void)pay_window_drop(&shard->window, PAY_ROW_DELIVERED);
    } else if (status == PAY_OK) {
        fenced(pub, shard);
    }
    return status;
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
