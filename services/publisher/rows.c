/* SPDX-License-Identifier: Apache-2.0 */
#include "services/publisher/internal.h"

#include "common/base/clock.h"
#include "common/base/mem.h"

#include "common/base/banned.h"

/* Over all shards; more stay in the table. Each has its part of it, so that one whose leader is
 * away leaves room for the others, and at least a few rows. */
#define ROWS_IN_HAND ((size_t)6144)
#define WINDOW_ROWS_MIN ((size_t)16)
#define BYTES_IN_HAND ((size_t)8 * 1024 * 1024)
#define ROW_BYTES ((size_t)1024) /* Before any was seen. */
/* An id that was drawn and has not been seen for so long was rolled back: the sweep would find it.
 */
#define UNSETTLED_US_MAX INT64_C(2000000)

static struct pay_str copy_free_text(struct pay_pg_array *array)
{
    const struct pay_str text = pay_pg_array_text(array);
    return text.ptr == NULL ? PAY_STR("") : text;
}

/* @return pairs. */
static size_t read_headers(const struct pay_pg_result *rows, size_t at,
                           struct pay_str headers[2 * PAY_ROW_HEADERS_MAX])
{
    struct pay_pg_array array = pay_pg_array_of(rows, at, PAY_RELAY_HEADERS);
    size_t count = 0;
    while (array.count >= 2 && count < PAY_ROW_HEADERS_MAX) {
        headers[2 * count] = copy_free_text(&array);
        headers[2 * count + 1] = copy_free_text(&array);
        count++;
    }
    return count;
}

/* Rows of one shard, on their way from a result into its window. */
struct taking {
    struct pay_publisher *pub;
    struct pay_outbox_row rows[PAY_WINDOW_ADD_MAX];
    struct pay_str headers[PAY_WINDOW_ADD_MAX][2 * PAY_ROW_HEADERS_MAX];
    size_t count;
    size_t bytes, taken; /* Of all. */
};

static enum pay_status hand_over(struct taking *taking, struct pay_err *err)
{
    if (taking->count == 0) {
        return PAY_OK;
    }
    struct pay_window *window = &taking->pub->shards[taking->rows[0].shard].window;
    const size_t before = window->bytes;
    const enum pay_status status = pay_window_add(window, taking->rows, taking->count, err);
    taking->bytes += window->bytes - before;
    taking->taken += taking->count;
    taking->count = 0;
    return status;
}

static bool has_place(const struct taking *taking, int shard)
{
    const struct pay_shard *to = &taking->pub->shards[shard];
    return to->held && to->window.count + taking->count < PAY_WINDOW_ROWS_MAX;
}

static void take_row(struct taking *taking, const struct pay_pg_result *rows, size_t at)
{
    struct pay_str *headers = taking->headers[taking->count];
    taking->rows[taking->count++] = (struct pay_outbox_row){
        .id = pay_pg_int(rows, at, PAY_RELAY_ID),
        .tid = pay_pg_tid(rows, at, PAY_RELAY_TID),
        .shard = (int)pay_pg_int(rows, at, PAY_RELAY_SHARD),
        .is_job = pay_str_eq_c(pay_pg_text(rows, at, PAY_RELAY_TOPIC), "psp-jobs"),
        .key = pay_pg_text(rows, at, PAY_RELAY_KEY),
        .payload = pay_pg_bytea(rows, at, PAY_RELAY_PAYLOAD),
        .attempts = (int)pay_pg_int(rows, at, PAY_RELAY_ATTEMPTS),
        .created_at_us = pay_pg_timestamptz(rows, at, PAY_RELAY_CREATED_AT),
        .headers = headers,
        .header_count = read_headers(rows, at, headers),
    };
}

static enum pay_status take_rows(struct pay_publisher *pub, const struct pay_pg_result *rows,
                                 struct pay_err *err)
{
    struct taking taking;
    enum pay_status status = PAY_OK;
    int last = -1;
    taking.pub = pub;
    taking.count = taking.bytes = taking.taken = 0;
    for (size_t i = 0; i < pay_pg_rows(rows) && status == PAY_OK; i++) {
        const int shard = (int)pay_pg_int(rows, i, PAY_RELAY_SHARD);
        if (shard != last || taking.count == PAY_WINDOW_ADD_MAX) {
            status = hand_over(&taking, err);
            last = shard;
        }
        if (status == PAY_OK && has_place(&taking, shard)) { /* Else found again by the sweep. */
            take_row(&taking, rows, i);
        }
    }
    status = status == PAY_OK ? hand_over(&taking, err) : status;
    pub->row_bytes = taking.taken > 0 ? taking.bytes / taking.taken : pub->row_bytes;
    return status;
}

/* What one read asks for. */
struct wanted {
    struct pay_relay_range ranges[PAY_RELAY_SHARDS_MAX];
    size_t range_count;
    size_t limit;      /* Rows of one shard. */
    int64_t *skip_ids; /* Sweep: what is in hand of those shards. */
    size_t skip_count;
};

size_t pay_publisher_part(const struct pay_publisher *pub, size_t whole)
{
    return whole / (size_t)(pub->held_count > 0 ? pub->held_count : 1);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t window_max(const struct pay_publisher *pub)
{
    const size_t part = pay_publisher_part(pub, ROWS_IN_HAND);
    return part < WINDOW_ROWS_MIN ? WINDOW_ROWS_MIN : smaller(part, PAY_WINDOW_ROWS_MAX);
}

static size_t rows_in_hand(const struct pay_publisher *pub)
{
    size_t count = 0;
    for (int i = 0; i < pub->shard_count; i++) {
        count += pub->shards[i].window.count;
    }
    return count;
}

/* As large as those that were read last. */
static size_t row_bytes(const struct pay_publisher *pub)
{
    return pub->row_bytes > 0 ? pub->row_bytes : ROW_BYTES;
}

/* Half a window: what is read next is there before the other half is gone. */
static size_t read_limit(const struct pay_publisher *pub)
{
    const size_t by_bytes = pay_publisher_part(pub, BYTES_IN_HAND) / 2 / row_bytes(pub);
    const size_t rows = smaller(window_max(pub) / 2, (size_t)pub->cfg->read_rows_max);
    return by_bytes == 0 ? 1 : smaller(rows, by_bytes);
}

static bool has_room(const struct pay_publisher *pub, const struct pay_window *window)
{
    const size_t limit = read_limit(pub);
    const size_t bytes = window->bytes + limit * row_bytes(pub);
    return window->count + limit <= window_max(pub) &&
           (window->count == 0 || bytes <= pay_publisher_part(pub, BYTES_IN_HAND));
}

static bool wants_read(const struct pay_publisher *pub, const struct pay_shard *shard, bool sweep)
{
    return shard->held && !shard->yielding && shard->sweeping == sweep &&
           has_room(pub, &shard->window);
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

static void choose(struct pay_publisher *pub, bool sweep, struct wanted *wanted)
{
    wanted->limit = read_limit(pub);
    for (int i = 0; i < pub->shard_count; i++) {
        if (wants_read(pub, &pub->shards[i], sweep)) {
            add_range(wanted, &pub->shards[i], sweep);
        }
    }
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
        pub->shards[at].sweeping = counts[at] == wanted->limit;
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
        .limit = (int)wanted->limit,
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

/* @param ret_ranges how many shards were asked: one that has no room is not. */
static enum pay_status read_shards(struct pay_publisher *pub, bool sweep, size_t *ret_rows,
                                   size_t *ret_ranges, struct pay_err *err)
{
    struct wanted wanted = {.range_count = 0};
    *ret_rows = 0;
    if (sweep) {
        wanted.skip_ids = pay_mem_new(rows_in_hand(pub), sizeof *wanted.skip_ids);
        if (wanted.skip_ids == NULL) {
            return pay_err_set(err, PAY_RETRY, 0, "sweep", "out of memory");
        }
    }
    choose(pub, sweep, &wanted);
    *ret_ranges = wanted.range_count;
    const enum pay_status status =
        wanted.range_count == 0 ? PAY_OK : read_wanted(pub, sweep, &wanted, ret_rows, err);
    pay_mem_free(wanted.skip_ids);
    return status;
}

/* The sequence is drawn before the commit, so a number without a row means: look again. So does a
 * shard that was not asked. */
static void note_read(struct pay_publisher *pub, int64_t last_id, size_t rows, size_t ranges)
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
    if (rows == 0 && ranges == (size_t)pub->held_count &&
        (seen >= last_id || now_us - pub->unsettled_since_us > UNSETTLED_US_MAX)) {
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

static bool any_wants_read(const struct pay_publisher *pub)
{
    for (int i = 0; i < pub->shard_count; i++) {
        const struct pay_shard *shard = &pub->shards[i];
        if (wants_read(pub, shard, false) || wants_read(pub, shard, true)) {
            return true;
        }
    }
    return false;
}

enum pay_status pay_publisher_read(struct pay_publisher *pub, struct pay_err *err)
{
    int64_t last_id = 0;
    int64_t database_us = 0;
    size_t rows = 0;
    size_t ranges = 0;
    const int64_t now_us = pay_clock_mono_us();
    if (now_us < pub->sweep_due_us && !any_wants_read(pub)) {
        return PAY_OK; /* Full hands. */
    }
    enum pay_status status = pay_relay_last_id(&pub->relay, &last_id, &database_us, err);
    if (status != PAY_OK) {
        return status;
    }
    if (now_us >= pub->sweep_due_us) {
        begin_pass(pub, now_us, database_us);
    }
    if (is_sweeping(pub)) {
        status = read_shards(pub, true, &rows, &ranges, err);
    }
    if (status == PAY_OK && last_id != pub->settled_id) { /* Else nothing was added: all is read. */
        status = read_shards(pub, false, &rows, &ranges, err);
        if (status == PAY_OK) {
            note_read(pub, last_id, rows, ranges);
        }
    }
    return status;
}
