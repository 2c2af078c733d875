/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A million malformed records leave memory where it was. Damaged values of every topic's record go
 * through the codec, damaged callbacks and answers through the Stripe adapter; after a first tenth,
 * in which arenas and buffers find their size, neither the heap nor the process may grow.
 *
 * usage: malformed [COUNT [SEED]]
 */
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/file.h"
#include "common/crypto/secret.h"
#include "common/psp/stripe.h"
#include "tests/unit/contracts/samples.h"

/* The environment and the process are touched by the only thread. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

#define COUNT_BY_DEFAULT 100000
#define SEED_BY_DEFAULT 20261130u
#define ARENA_BYTES_MAX ((size_t)8 << 20)
#define BASES_MAX 128
#define BASE_BYTES_MAX 65536
#define ATTEMPT "01ARZ3NDEKTSV4RRFFQ69G5FAVA01"

/* What may be left over: nothing of the heap but what a library caches, a few pages of the rest. */
#define HEAP_BYTES_MAX ((size_t)64 * 1024)
#define PROCESS_BYTES_MAX ((size_t)2 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CAN_MEASURE 0 /* The sanitizer's own heap: it looks for leaks by itself. */
#else
#define CAN_MEASURE 1
#endif

struct base {
    int record; /* PAY_RECORD_COUNT: a callback; one more: an answer. */
    struct pay_bytes bytes;
};

struct bench {
    struct pay_codec *codec;
    struct pay_arena *arena;
    struct pay_arena *samples;
    struct pay_psp_account account;
    struct pay_secret *secrets[2];
    struct base bases[BASES_MAX];
    size_t base_count;
    uint32_t random;
    uint8_t value[BASE_BYTES_MAX + 64];
    size_t len;
    uint64_t refused, taken;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "malformed: %s\n", what);
    exit(1);
}

static uint32_t next(struct bench *bench)
{
    bench->random ^= bench->random << 13;
    bench->random ^= bench->random >> 17;
    bench->random ^= bench->random << 5;
    return bench->random;
}

/* ---- what is damaged ---- */

static void add_base(struct bench *bench, int record, struct pay_bytes bytes)
{
    if (bench->base_count == BASES_MAX || bytes.len > BASE_BYTES_MAX) {
        fail("too many samples, or one too large");
    }
    struct base *base = &bench->bases[bench->base_count++];
    *base = (struct base){record, pay_arena_bytes(bench->samples, bytes)};
    if (base->bytes.ptr == NULL) {
        fail("memory is out");
    }
}

static void add_records(struct bench *bench)
{
    struct pay_buf value = pay_buf_make(BASE_BYTES_MAX);
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        const struct record_case *of = &record_cases[record];
        for (size_t variant = 0; variant < of->variants; variant++) {
            union any_record sample;
            of->make(&sample, variant);
            pay_buf_reset(&value);
            if (of->encode(bench->codec, &sample, &value, NULL) != PAY_OK) {
                fail("a sample cannot be written");
            }
            add_base(bench, record, pay_buf_bytes(&value));
        }
    }
    pay_buf_free(&value);
}

static void add_stripe(struct bench *bench)
{
    static const char *const files[] = {
        "payment_succeeded", "payment_requires_action", "payment_failed", "charge_succeeded",
        "charge_refunded",   "refund_succeeded",        "dispute_opened", "thin_event_v2",
    };
    char path[512];
    struct pay_buf text = pay_buf_make(BASE_BYTES_MAX);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/samples/stripe/%s.json", PAY_TEST_DATA, files[i]);
        pay_buf_reset(&text);
        if (pay_file_read_buf(path, &text, NULL) != PAY_OK) {
            fail(path);
        }
        add_base(bench, PAY_RECORD_COUNT, pay_buf_bytes(&text));
        add_base(bench, PAY_RECORD_COUNT + 1, pay_buf_bytes(&text));
    }
    pay_buf_free(&text);
}

/* ---- how ---- */

static void damage_once(struct bench *bench)
{
    static const uint8_t odd[] = {0x00, 0xff, 0x80, 0x7f, '"', '{', '[', '\\', ',', '9'};
    const size_t at = next(bench) % bench->len;
    switch (next(bench) % 5) {
    case 0: /* cut */
        bench->len = at == 0 ? 1 : at;
        break;
    case 1: /* another byte */
        bench->value[at] = odd[next(bench) % sizeof odd];
        break;
    case 2: /* a bit */
        bench->value[at] ^= (uint8_t)(1u << (next(bench) % 8));
        break;
    case 3: /* a number that does not end: a length, a count, an index */
        for (size_t i = at; i < bench->len && i < at + 9; i++) {
            bench->value[i] = 0xff;
        }
        break;
    default: /* noise to the end */
        for (size_t i = at; i < bench->len; i++) {
            bench->value[i] = (uint8_t)next(bench);
        }
        break;
    }
}

static const struct base *damage(struct bench *bench)
{
    const struct base *base = &bench->bases[next(bench) % bench->base_count];
    memcpy(bench->value, base->bytes.ptr, base->bytes.len);
    bench->len = base->bytes.len;
    for (uint32_t n = next(bench) % 3 + 1; n > 0; n--) {
        damage_once(bench);
    }
    return base;
}

/* ---- who gets it ---- */

static enum pay_status give_codec(struct bench *bench, int record)
{
    static union any_record into; /* Large. */
    return record_cases[record].decode(bench->codec, (struct pay_bytes){bench->value, bench->len},
                                       bench->arena, &into, NULL);
}

static enum pay_status give_callback(struct bench *bench)
{
    struct pay_str key_id;
    struct pay_psp_items items;
    const struct pay_psp_header header = {
        PAY_STR("Stripe-Signature"),
        {(const char *)bench->value, bench->len < 200 ? bench->len : 200}};
    const struct pay_psp_notification raw = {
        .headers = &header, .header_count = 1, .body = {bench->value, bench->len}};
    if (pay_psp_stripe.verify(&bench->account, &raw, 0, &key_id) == PAY_PSP_OK) {
        fail("noise is a signature");
    }
    return pay_psp_stripe.parse(&bench->account, &raw, bench->arena, &items, NULL);
}

static enum pay_status give_answer(struct bench *bench)
{
    static const int statuses[] = {200, 400, 402, 404, 409, 429, 500};
    const struct pay_psp_request_job job = {
        .kind = (enum pay_job_kind)(next(bench) % PAY_JOB_KIND_COUNT),
        .job_id = PAY_STR(ATTEMPT ".JOB"),
        .payment_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .attempt_id = PAY_STR(ATTEMPT),
        .request_no = PAY_STR(ATTEMPT),
        .number = 1,
        .amount_minor = 2599,
        .attempt_amount_minor = 2599,
        .currency = PAY_STR("EUR"),
    };
    const struct pay_psp_response response = {
        .job = &job,
        .send_no = 1,
        .asked_at_us = 1,
        .delivery = PAY_PSP_ANSWERED,
        .http_status = statuses[next(bench) % (sizeof statuses / sizeof statuses[0])],
        .body = {bench->value, bench->len},
    };
    struct pay_psp_reading reading;
    return pay_psp_stripe.read(&bench->account, &response, bench->arena, &reading, NULL);
}

static void give(struct bench *bench)
{
    const struct base *base = damage(bench);
    pay_arena_reset(bench->arena);
    const enum pay_status status = base->record < PAY_RECORD_COUNT ? give_codec(bench, base->record)
                                   : base->record == PAY_RECORD_COUNT ? give_callback(bench)
                                                                      : give_answer(bench);
    if (status != PAY_OK && status != PAY_REJECT) {
        fail("neither taken nor refused");
    }
    bench->refused += status == PAY_REJECT ? 1 : 0;
    bench->taken += status == PAY_OK ? 1 : 0;
}

/* ---- what is left ---- */

struct memory {
    size_t heap, process; /* Bytes. */
};

static struct memory measure(void)
{
    unsigned long long whole = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL ||
        fscanf(file, "%llu %llu", &whole, &resident) != 2) { /* NOLINT(cert-err34-c) */
        fail("/proc/self/statm cannot be read");
    }
    (void)fclose(file); /* only read */
    return (struct memory){mallinfo2().uordblks, (size_t)resident * (size_t)sysconf(_SC_PAGESIZE)};
}

static bool is_within(const char *what, size_t before, size_t after, size_t most)
{
    (void)printf("%s: %zu bytes after a tenth, %zu at the end\n", what, before, after);
    return !CAN_MEASURE || after <= before + most;
}

static struct bench *start(uint32_t seed)
{
    static struct bench bench;
    const struct pay_bytes key = {(const uint8_t *)"whsec_test_secret", 17};
    bench.random = seed;
    bench.account = (struct pay_psp_account){.id = "stripe-a",
                                             .psp = "stripe",
                                             .merchant_id = "acme",
                                             .endpoint = "https://api.stripe.test",
                                             .callback_key_count = 1};
    bench.arena = pay_arena_new(ARENA_BYTES_MAX);
    bench.samples = pay_arena_new(ARENA_BYTES_MAX);
    if (bench.arena == NULL || bench.samples == NULL ||
        pay_codec_new(&bench.codec, NULL) != PAY_OK ||
        pay_secret_of("whsec-a", key, &bench.secrets[0], NULL) != PAY_OK) {
        fail("cannot start");
    }
    bench.account.callback_keys[0] =
        (struct pay_psp_key){.id = "whsec-a", .secret = bench.secrets[0]};
    add_records(&bench);
    add_stripe(&bench);
    return &bench;
}

static void stop(struct bench *bench)
{
    (void)pay_secret_free(bench->secrets[0]); /* always NULL, as the next */
    (void)pay_codec_free(bench->codec);
    (void)pay_arena_free(bench->arena);
    (void)pay_arena_free(bench->samples);
}

int main(int argc, char **argv)
{
    const unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : COUNT_BY_DEFAULT;
    const uint32_t seed = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : SEED_BY_DEFAULT;
    struct bench *bench = start(seed == 0 ? SEED_BY_DEFAULT : seed);
    struct memory before = measure();
    for (unsigned long i = 0; i < count; i++) {
        if (i == count / 10) {
            before = measure();
        }
        give(bench);
    }
    const struct memory after = measure();
    (void)printf("seed %" PRIu32 ": %lu records, %" PRIu64 " refused, %" PRIu64
                 " taken all the same\n",
                 seed, count, bench->refused, bench->taken);
    bool holds = is_within("heap", before.heap, after.heap, HEAP_BYTES_MAX);
    holds = is_within("process", before.process, after.process, PROCESS_BYTES_MAX) && holds;
    holds = bench->refused > count / 4 && bench->taken > 0 && holds;
    stop(bench);
    (void)printf("%s\n", holds ? "memory is where it was" : "MEMORY GREW");
    return holds ? 0 : 1;
}

/* NOLINTEND(concurrency-mt-unsafe) */
