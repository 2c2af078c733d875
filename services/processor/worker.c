/* SPDX-License-Identifier: Apache-2.0 */
#include "services/processor/worker.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/release.h"
#include "common/io/pg/pg_error.h"

#include "common/base/banned.h"

#define BYTES_MAX PAY_DEAD_LETTER_BYTES_MAX

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
    worker->batch = pay_arena_new(PAY_PROCESSOR_ARENA_MAX);
    worker->scratch = pay_arena_new(PAY_PROCESSOR_ARENA_MAX);
    worker->decision = pay_mem_new(1, sizeof(*worker->decision));
    enum pay_status status = pay_codec_new(&worker->codec, err);
    if (status == PAY_OK) {
        status = pay_codec_write_release(worker->codec, common->schema_write, err);
    }
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

void pay_worker_use_keyring(struct pay_worker *worker, struct pay_keyring *keyring)
{
    worker->keyring = keyring;
}

enum pay_status pay_worker_connect(struct pay_worker *worker, struct pay_err *err)
{
    bool is_ready = false;
    const char *why = NULL;
    if (pay_store_usable(worker->store)) {
        return PAY_OK;
    }
    enum pay_status status = pay_store_connect(worker->store, err);
    if (status == PAY_OK) {
        status = pay_store_prefer_indexes(worker->store, err);
    }
    if (status == PAY_OK) {
        status = pay_store_check_schema(worker->store, &is_ready, &why, err);
    }
    if (status == PAY_OK && !is_ready) {
        pay_pg_disconnect(pay_store_pg(worker->store));
        status = pay_err_set(err, PAY_RETRY, 0, "worker.connect", "%s", why);
    }
    return status;
}

/* ---- one batch ---- */

struct range {
    size_t from, count;
};

/* A batch that is halved until it is one long holds one half at each depth: log2 of its size. */
#define RANGES_MAX 16

/* The poison row holds nothing of the message but its sealed bytes: it can always be written. */
static void condemn(struct pay_item *item, const struct pay_err *err)
{
    item->input = (struct pay_payment_input){.kind = PAY_WIRE_UNRECOGNIZED,
                                             .source = PAY_SOURCE_UNRECOGNIZED};
    item->command = NULL;
    item->route_count = 0;
    item->trace_id = (struct pay_str){NULL, 0};
    item->normalized = (struct pay_bytes){NULL, 0};
    pay_item_poison(item, PAY_DEAD_DATA_REFUSED, err->text);
}

/* @return false: it was poison before, and even that is refused. */
static bool is_condemned(struct pay_item *item, const struct pay_err *err)
{
    PAY_ASSERT(item != NULL);
    if (item->kind == PAY_ITEM_POISON) {
        return false;
    }
    if (item->twin != NULL) { /* what it replays is refused as it was before, not the command */
        item->twin = NULL;
        item->twin_refusal = pay_dead_reason_name(PAY_DEAD_DATA_REFUSED);
        return true;
    }
    condemn(item, err);
    return true;
}

static bool can_split(enum pay_status status, const struct pay_err *err)
{
    return status == PAY_REJECT || (status == PAY_RETRY && err->code == PAY_CODEC_NO_MEMORY);
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

/* @return PAY_OK, PAY_REJECT (or too large: to be split), PAY_RETRY: given up, PAY_FATAL. */
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
        if (status == PAY_FATAL || can_split(status, err)) {
            return status;
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
        if (!can_split(status, err)) {
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
            return pay_err_set(err, PAY_FATAL, 0, "worker.settle", "poison cannot be kept");
        }
    }
    return PAY_OK;
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
        pay_arena_reset(worker->scratch);
        status = pay_poison_letter(worker, items[i], worker->now_us, &letter, err);
        while (status == PAY_OK && !worker->options.dead_letter(worker->options.ctx, items[i]->msg,
                                                                pay_buf_bytes(&letter))) {
            (void)pay_err_set(err, PAY_RETRY, 0, "dead_letter", "not acknowledged");
            status = wait_again(worker, PAY_RETRY, err) ? PAY_OK : PAY_RETRY;
        }
    }
    worker->backoff.tries = 0;
    pay_buf_free(&letter);
    return status;
}

static enum pay_status read_items(struct pay_worker *worker, const struct pay_kafka_msg *msgs,
                                  size_t count, struct pay_item ***ret_items, struct pay_err *err)
{
    pay_arena_reset(worker->batch);
    struct pay_item *items = pay_arena_array(worker->batch, count, sizeof(*items));
    struct pay_item **pointers =
        (struct pay_item **)pay_arena_array(worker->batch, count, sizeof(struct pay_item *));
    if (items == NULL || pointers == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "worker.read", "a batch does not fit the arena");
    }
    for (size_t i = 0; i < count; i++) {
        pay_item_read(worker, &msgs[i], &items[i]);
        pointers[i] = &items[i];
    }
    *ret_items = pointers;
    return PAY_OK;
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
    struct pay_item *none = NULL;
    struct pay_item **items = &none;
    int64_t began_us = pay_clock_mono_us();
    worker->accounts = accounts;
    enum pay_status status = read_items(worker, msgs, count, &items, err);
    status = status != PAY_OK ? status : settle(worker, items, count, err);
    status = status != PAY_OK ? status : produce_letters(worker, items, count, err);
    if (status == PAY_OK) {
        pay_metric_observe(worker->metrics[PAY_PM_BATCH], NULL, (int64_t)count);
        pay_metric_observe(worker->metrics[PAY_PM_BATCH_SECONDS], NULL,
                           pay_clock_mono_us() - began_us);
    }
    return status;
}
