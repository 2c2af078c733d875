/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/worker.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/release.h"
#include "common/io/pg/pg_error.h"
#include "common/store/schema.h"

#include "common/base/banned.h"

#define BYTES_MAX PAY_DEAD_LETTER_BYTES_MAX

static size_t bytes_or_default(size_t bytes)
{
    return bytes == 0 ? PAY_PROCESSOR_ARENA_MAX : bytes;
}

enum pay_status pay_worker_open(const struct pay_worker_options *options,
                                struct pay_worker **ret_worker, struct pay_err *err)
{
    const struct pay_common_config *common = &options->cfg->common;
    struct pay_worker *worker = pay_mem_new(1, sizeof(*worker));
    if (worker == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "worker.open", "memory is out");
    }
    worker->options = *options;
    worker->cfg = options->cfg;
    worker->metrics = options->metrics;
    worker->keyring = options->keyring;
    worker->partitions = options->partitions;
    worker->bytes = pay_buf_make(BYTES_MAX);
    worker->batch = pay_arena_new(bytes_or_default(options->batch_bytes_max));
    worker->scratch = pay_arena_new(bytes_or_default(options->try_bytes_max));
    worker->decision = pay_mem_new(1, sizeof(*worker->decision));
    enum pay_status status = pay_codec_new_writing(common->schema_write, &worker->codec, err);
    if (status == PAY_OK) {
        const struct pay_pg_options pg = {
            .conninfo = common->pg_conninfo,
            .password_file = common->pg_password_file,
            .application_name = "payfact-processor",
        };
        status = pay_store_new(&pg, &worker->store, err);
    }
    if (status == PAY_OK &&
        (worker->batch == NULL || worker->scratch == NULL || worker->decision == NULL)) {
        status = pay_err_set(err, PAY_FATAL, 0, "worker.open", "memory is out");
    }
    if (status != PAY_OK) {
        (void)pay_worker_close(worker); /* always NULL */
        return status;
    }
    *ret_worker = worker;
    return PAY_OK;
}

struct pay_worker *pay_worker_close(struct pay_worker *worker)
{
    if (worker != NULL) {
        worker->store = pay_store_free(worker->store);
        worker->codec = pay_codec_free(worker->codec);
        worker->batch = pay_arena_free(worker->batch);
        worker->scratch = pay_arena_free(worker->scratch);
        worker->decision = pay_mem_free(worker->decision);
        pay_buf_free(&worker->bytes);
        pay_mem_free(worker);
    }
    return NULL;
}

bool pay_worker_connected(const struct pay_worker *worker)
{
    return pay_store_usable(worker->store);
}

enum pay_status pay_worker_probe(struct pay_worker *worker, struct pay_err *err)
{
    if (!pay_store_usable(worker->store)) {
        return pay_worker_connect(worker, err);
    }
    const enum pay_status status =
        pay_store_schema_check(pay_store_pg(worker->store), PAY_STORE_SCHEMA_PARTITIONS, err);
    if (status != PAY_OK && err->code != PAY_STORE_SCHEMA) { /* Work goes on while it can. */
        pay_pg_disconnect(pay_store_pg(worker->store));
    }
    return status;
}

void pay_worker_use_keyring(struct pay_worker *worker, struct pay_keyring *keyring)
{
    worker->keyring = keyring;
}

enum pay_status pay_worker_connect(struct pay_worker *worker, struct pay_err *err)
{
    if (pay_store_usable(worker->store)) {
        return PAY_OK;
    }
    enum pay_status status = pay_store_connect(worker->store, err);
    if (status == PAY_OK) {
        status = pay_store_prefer_indexes(worker->store, err);
    }
    if (status == PAY_OK) {
        status =
            pay_store_schema_check(pay_store_pg(worker->store), PAY_STORE_SCHEMA_PARTITIONS, err);
    }
    if (status != PAY_OK) {
        pay_pg_disconnect(pay_store_pg(worker->store)); /* Half of it is no connection. */
    }
    return status;
}

/* ---- one batch ---- */

struct range {
    size_t from, count;
};

/* A batch that is halved until it is one long holds one half at each depth: log2 of its size. */
#define RANGES_MAX 16

/* @return false: it was poison before, and even that is refused. */
static bool is_condemned(struct pay_item *item, const struct pay_err *err)
{
    PAY_ASSERT(item != NULL);
    const bool is_large = err->status == PAY_RETRY; /* can_split() */
    const enum pay_dead_reason reason = is_large ? PAY_DEAD_TOO_LARGE : PAY_DEAD_DATA_REFUSED;
    if (item->kind == PAY_ITEM_POISON) { /* a deadline's own key may be what is refused */
        return pay_item_forget_deadline(item);
    }
    if (item->twin != NULL) { /* what it replays is refused as it was before, not the command */
        item->twin = NULL;
        item->twin_refusal = pay_dead_reason_name(reason);
        return true;
    }
    pay_item_condemn(item, reason,
                     is_large ? "its decision alone needs more memory than there may be"
                              : err->text);
    return true;
}

/* What the arena has no room for is a matter of size; what the heap has not is there later. */
static bool can_split(const struct pay_worker *worker, enum pay_status status)
{
    return status == PAY_REJECT || (status == PAY_RETRY && pay_arena_refused(worker->scratch));
}

/* Tries of a batch that finds other rows than it must before it is made smaller. */
#define STUBBORN_TRIES 5

/* A lost race, which the next try settles; or what two inputs of one batch do to each other. */
static bool is_stubborn(enum pay_status status, const struct pay_err *err)
{
    return status == PAY_RETRY &&
           (err->code == PAY_STORE_COUNT || err->code == pay_pg_sqlstate_code("23505"));
}

/* @return false: wait() gave up. */
static bool wait_again(struct pay_worker *worker, enum pay_status status, const struct pay_err *err)
{
    pay_metric_add(worker->metrics[PAY_PM_RETRIES], (const char *const[]){pay_status_name(status)},
                   1);
    enum pay_log_level level = err->code == PAY_STORE_COUNT ? PAY_LOG_INFO : PAY_LOG_WARN;
    bool is_lasting = is_stubborn(status, err) && worker->backoff.tries >= STUBBORN_TRIES;
    pay_log(is_lasting ? PAY_LOG_ERROR : level, "batch_retry", PAY_F_ERR(err));
    worker->backoff.min_ms = 10;
    worker->backoff.max_ms = (int)worker->cfg->retry_max_ms;
    return worker->options.wait(worker->options.ctx, pay_pg_backoff_next_ms(&worker->backoff));
}

/* @return PAY_OK, PAY_REJECT: to be split, or alone the poison, PAY_RETRY: given up, PAY_FATAL. */
static enum pay_status apply(struct pay_worker *worker, struct pay_item **items, size_t count,
                             struct pay_err *err)
{
    for (int stubborn = 0;;) {
        enum pay_status status = pay_worker_connect(worker, err);
        if (status == PAY_OK) {
            status = pay_apply(worker, items, count, err);
        }
        if (status == PAY_OK) {
            worker->backoff.tries = 0;
            return PAY_OK;
        }
        if (status == PAY_FATAL) {
            return status;
        }
        if (can_split(worker, status)) {
            return PAY_REJECT;
        }
        /* One alone is never poison for this: what it meets may be gone by the next try. */
        stubborn += is_stubborn(status, err) ? 1 : 0;
        if (stubborn > STUBBORN_TRIES && count > 1) {
            worker->backoff.tries = 0;
            return PAY_REJECT;
        }
        /* An unknown COMMIT is read back by the next try: what is in the inbox was committed. */
        if (!wait_again(worker, status, err)) {
            return PAY_RETRY;
        }
    }
}

/* Halves what is refused until the poison is alone; everything else is committed. */
static enum pay_status settle(struct pay_worker *worker, struct pay_item **items, size_t count,
                              struct pay_err *err)
{
    struct range stack[RANGES_MAX];
    size_t depth = 0;
    stack[depth++] = (struct range){0, count};
    while (depth > 0) {
        struct range at = stack[--depth];
        enum pay_status status = apply(worker, items + at.from, at.count, err);
        if (status == PAY_OK) {
            continue;
        }
        if (status != PAY_REJECT) {
            return status;
        }
        if (at.count > 1) {
            size_t half = at.count / 2;
            PAY_ASSERT(depth + 2 <= RANGES_MAX);
            stack[depth++] = (struct range){at.from + half, at.count - half};
            stack[depth++] = (struct range){at.from, half};
        } else if (is_condemned(items[at.from], err)) {
            stack[depth++] = at;
        } else {
            const struct pay_err why = *err;
            return pay_err_set(err, PAY_FATAL, why.code, "worker.settle",
                               "poison cannot be kept: %s", why.text);
        }
    }
    return PAY_OK;
}

static enum pay_status produce_letter(struct pay_worker *worker, const struct pay_item *item,
                                      struct pay_buf *letter, struct pay_err *err)
{
    pay_arena_reset(worker->scratch);
    const enum pay_status status = pay_poison_letter(worker, item, worker->now_us, letter, err);
    if (status != PAY_OK) {
        return status;
    }
    return worker->options.dead_letter(worker->options.ctx, item->msg, pay_buf_bytes(letter))
               ? PAY_OK
               : pay_err_set(err, PAY_RETRY, 0, "dead_letter", "not acknowledged");
}

static enum pay_status produce_letters(struct pay_worker *worker, struct pay_item **items,
                                       size_t count, struct pay_err *err)
{
    struct pay_buf letter = pay_buf_make(BYTES_MAX);
    enum pay_status status = PAY_OK;
    for (size_t i = 0; i < count && status == PAY_OK; i++) {
        if (!items[i]->dead_letter) {
            continue;
        }
        do {
            status = produce_letter(worker, items[i], &letter, err);
        } while (status == PAY_RETRY && wait_again(worker, status, err));
    }
    worker->backoff.tries = 0;
    pay_buf_free(&letter);
    return status;
}

/* What was read of a batch: as many of its records as the arena holds. */
struct reading {
    struct pay_item **items;
    size_t count;
};

/* One record that the empty arena has no room for: its own size, or memory that is ours to find. */
static enum pay_status read_alone(struct pay_worker *worker, struct reading *reading,
                                  enum pay_status status)
{
    if (status != PAY_RETRY || !pay_arena_refused(worker->batch)) {
        return status;
    }
    pay_item_condemn(reading->items[0], PAY_DEAD_TOO_LARGE,
                     "alone it needs more memory than there may be");
    reading->count = 1;
    return PAY_OK;
}

static enum pay_status read_some(struct pay_worker *worker, const struct pay_kafka_msg *msgs,
                                 size_t count, struct reading *reading, struct pay_err *err)
{
    pay_arena_reset(worker->batch);
    struct pay_item *items = pay_arena_array(worker->batch, count, sizeof(*items));
    reading->items =
        (struct pay_item **)pay_arena_array(worker->batch, count, sizeof(struct pay_item *));
    reading->count = 0;
    enum pay_status status = PAY_OK;
    if (items == NULL || reading->items == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "worker.read", "a batch does not fit the arena");
    }
    for (size_t i = 0; i < count && status == PAY_OK; i++) {
        reading->items[i] = &items[i];
        status = pay_item_read(worker, &msgs[i], &items[i], err);
        items[i].log_no = i;
        reading->count += status == PAY_OK ? 1 : 0;
    }
    if (reading->count > 0) { /* The others come next, into an empty arena. */
        return PAY_OK;
    }
    return count == 1 ? read_alone(worker, reading, status)
                      : read_some(worker, msgs, 1, reading, err);
}

/* At least one, whatever it takes. */
static enum pay_status read_items(struct pay_worker *worker, const struct pay_kafka_msg *msgs,
                                  size_t count, struct reading *reading, struct pay_err *err)
{
    enum pay_status status = PAY_OK;
    do {
        status = read_some(worker, msgs, count, reading, err);
    } while (status == PAY_RETRY && wait_again(worker, status, err));
    if (status == PAY_OK) {
        worker->backoff.tries = 0;
    }
    return status;
}

enum pay_status pay_worker_outcome(enum pay_status status, bool is_draining, struct pay_err *err)
{
    if (status != PAY_RETRY) {
        return status;
    }
    if (is_draining) {
        return PAY_OK;
    }
    const struct pay_err why = *err;
    return pay_err_set(err, PAY_FATAL, why.code, "worker.outcome",
                       "a batch was given up while running: %s", why.text);
}

enum pay_status pay_worker_turn(struct pay_worker *worker, const struct pay_accounts *accounts,
                                const struct pay_kafka_msg *msgs, size_t count, struct pay_err *err)
{
    int64_t began_us = pay_clock_mono_us();
    enum pay_status status = PAY_OK;
    worker->accounts = accounts;
    for (size_t done = 0; done < count && status == PAY_OK;) {
        struct reading reading;
        status = read_items(worker, msgs + done, count - done, &reading, err);
        status = status != PAY_OK ? status : settle(worker, reading.items, reading.count, err);
        status =
            status != PAY_OK ? status : produce_letters(worker, reading.items, reading.count, err);
        done += status == PAY_OK ? reading.count : 0;
    }
    if (status == PAY_OK) {
        pay_metric_observe(worker->metrics[PAY_PM_BATCH], NULL, (int64_t)count);
        pay_metric_observe(worker->metrics[PAY_PM_BATCH_SECONDS], NULL,
                           pay_clock_mono_us() - began_us);
    }
    return status;
}
