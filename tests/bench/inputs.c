/* SPDX-License-Identifier: Apache-2.0 */
/* bench-inputs: fills the topic that the processor reads, with records as ingest makes them.
 *
 *   bench-inputs BROKERS TOPIC create FIRST COUNT KEY_FILE          signed CREATE_PAYMENT
 *   bench-inputs BROKERS TOPIC processing|succeeded FIRST COUNT ROUND [POISON_EVERY]
 *                                                  a callback each; ROUND makes their numbers new
 *   bench-inputs BROKERS TOPIC malformed FIRST COUNT                cut, changed and random bytes
 *
 * Payments are FIRST .. FIRST + COUNT - 1. Every POISON_EVERY-th callback carries a value that no
 * column of the database holds.
 */
#include <string.h>

#include "common/base/mem.h"
#include "common/contracts/command_record.h"
#include "common/contracts/keys.h"
#include "common/core/id.h"
#include "common/crypto/ed25519.h"
#include "common/io/kafka/kafka_producer.h"
#include "tests/bench/bench.h"

#define EVIDENCE_BYTES 628 /* 600 of a body, sealed. */
#define ACCOUNT "stripe-a"

struct maker {
    struct pay_codec *codec;
    struct pay_kafka_producer *producer;
    struct pay_ed25519_private *key;
    const char *topic;
    const char *round;
    int64_t poison_every;
    size_t delivered;
    struct pay_buf value, command;
    uint8_t evidence[EVIDENCE_BYTES];
    char payment[BENCH_PAYMENT_LEN + 1];
};

static void must(enum pay_status status, const struct pay_err *err)
{
    if (status != PAY_OK) {
        bench_fail(err->op, err->text);
    }
}

static void on_report(void *ctx, const struct pay_kafka_report *report)
{
    struct maker *maker = ctx;
    if (report->status != PAY_OK) {
        bench_fail("a record was not delivered", report->reason);
    }
    maker->delivered++;
}

static void produce(struct maker *maker, struct pay_bytes value)
{
    struct pay_err err = {.status = PAY_OK};
    const struct pay_kafka_record record = {
        .topic = maker->topic, .key = pay_str_of(maker->payment), .value = value};
    enum pay_status status = PAY_OK;
    while ((status = pay_kafka_produce(maker->producer, &record, &err)) == PAY_RETRY) {
        (void)pay_kafka_producer_poll(maker->producer, 10);
    }
    must(status, &err);
}

static void produce_input(struct maker *maker, const struct pay_payment_input *input)
{
    struct pay_err err = {.status = PAY_OK};
    pay_buf_reset(&maker->value);
    must(pay_payment_input_encode(maker->codec, input, &maker->value, &err), &err);
    produce(maker, pay_buf_bytes(&maker->value));
}

/* ---- commands ---- */

static struct pay_command create_command(const char *payment)
{
    return (struct pay_command){
        .command_id = pay_str_of(payment),
        .type = PAY_CMD_CREATE_PAYMENT,
        .caller = PAY_STR("shop"),
        .merchant_id = PAY_STR("acme"),
        .payment_id = pay_str_of(payment),
        .issued_at_us = bench_now_us(),
        .create_payment = {.merchant_order_no = pay_str_of(payment),
                           .amount = {.amount_minor = 2599, .currency = "EUR"},
                           .capture_mode = PAY_CAPTURE_AUTOMATIC,
                           .retry_until_expiry = -1,
                           .routes = {{.psp = PAY_STR("stripe"),
                                       .psp_account = PAY_STR(ACCOUNT),
                                       .method = PAY_STR("card")}},
                           .route_count = 1,
                           .start = true},
    };
}

static void sign(const struct maker *maker, struct pay_bytes value,
                 uint8_t signature[PAY_ED25519_SIGNATURE_BYTES])
{
    struct pay_buf message = pay_buf_make(PAY_COMMAND_BYTES_MAX + 64);
    pay_buf_add(&message, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&message, value.ptr, value.len);
    pay_ed25519_sign(maker->key, pay_buf_bytes(&message), signature);
    pay_buf_free(&message);
}

static void make_create(struct maker *maker, int64_t number)
{
    struct pay_err err = {.status = PAY_OK};
    uint8_t signature[PAY_ED25519_SIGNATURE_BYTES];
    uint8_t fingerprint[8];
    const struct pay_command command = create_command(maker->payment);
    const struct pay_sealed params = {
        .key_id = PAY_STR("test-1"),
        .ciphertext = {maker->evidence, 160},
        .bound_to = PAY_STR("params/acme/shop/create/0"),
    };
    (void)number;
    pay_buf_reset(&maker->command);
    must(pay_command_encode(maker->codec, &command, &maker->command, &err), &err);
    sign(maker, pay_buf_bytes(&maker->command), signature);
    pay_fingerprint_put(fingerprint, pay_codec_fingerprint(maker->codec, PAY_RECORD_COMMAND));
    const struct pay_payment_input input = {
        .input_id = pay_str_of(maker->payment),
        .kind = PAY_WIRE_COMMAND,
        .source = PAY_SOURCE_MERCHANT,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = pay_str_of(maker->payment),
        .command = {.value = pay_buf_bytes(&maker->command),
                    .signature = {signature, sizeof signature},
                    .key_id = PAY_STR("shop-key"),
                    .writer_fingerprint = {fingerprint, sizeof fingerprint},
                    .params = &params,
                    .param_count = 1},
        .received_at_us = bench_now_us(),
    };
    produce_input(maker, &input);
}

/* ---- callbacks ---- */

static void make_callback(struct maker *maker, int64_t number, enum pay_event_type type)
{
    char request_no[PAY_ACTION_ID_SIZE], intent[64], charge[64], transport[96];
    char business[PAY_BUSINESS_KEY_SIZE];
    pay_id_action(request_no, maker->payment, 'A', 1);
    (void)snprintf(intent, sizeof intent, "pi_3P%s", maker->payment);
    (void)snprintf(charge, sizeof charge, "ch_3P%s", maker->payment);
    (void)snprintf(transport, sizeof transport, "evt_%s%s%c", maker->round, maker->payment,
                   type == PAY_EV_ATTEMPT_SUCCEEDED ? 's' : 'p');
    struct pay_payment_input input = {
        .input_id = pay_str_of(maker->payment),
        .kind = PAY_WIRE_PSP_EVENT,
        .source = PAY_SOURCE_WEBHOOK,
        .evidence_level = PAY_EVIDENCE_WEBHOOK,
        .payment_id = pay_str_of(maker->payment),
        .event = {.type = type,
                  .psp = PAY_STR("stripe"),
                  .psp_account = PAY_STR(ACCOUNT),
                  .merchant_request_no = pay_str_of(request_no),
                  .provider_payment_id = pay_str_of(intent),
                  .references = {{PAY_REF_INTENT, pay_str_of(intent)},
                                 {PAY_REF_CHARGE, pay_str_of(charge)}},
                  .reference_count = 2,
                  .has_amount = true,
                  .amount = {.amount_minor = 2599, .currency = "EUR"},
                  .normalized_result = PAY_STR("succeeded"),
                  .psp_event_type = PAY_STR("payment_intent.succeeded")},
        .transport_key = pay_str_of(transport),
        .occurred_at_us = bench_now_us(),
        .received_at_us = bench_now_us(),
        .evidence = {.ciphertext = {maker->evidence, EVIDENCE_BYTES},
                     .key_id = PAY_STR("test-1"),
                     .sha256 = {maker->evidence, PAY_SHA256_BYTES},
                     .verified_by = PAY_STR("whsec-a")},
        .traceparent = PAY_STR("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    };
    if (type == PAY_EV_ATTEMPT_PROCESSING) {
        input.event.normalized_result = PAY_STR("processing");
        input.event.psp_event_type = PAY_STR("payment_intent.processing");
    }
    if (maker->poison_every > 0 && number % maker->poison_every == maker->poison_every / 2) {
        input.source = PAY_SOURCE_SYNC;
        input.evidence_level = PAY_EVIDENCE_SYNC_RESPONSE;
        input.event.call = (struct pay_call){.is_set = true,
                                             .job_id = PAY_STR("bench.SUBMIT"),
                                             .send_no = 1,
                                             .http_status = 100000}; /* No column holds it. */
    }
    if (!pay_business_key(business, &input.event)) {
        bench_fail("business key", "too long");
    }
    input.business_key = pay_str_of(business);
    produce_input(maker, &input);
}

static void make_processing(struct maker *maker, int64_t number)
{
    make_callback(maker, number, PAY_EV_ATTEMPT_PROCESSING);
}

static void make_succeeded(struct maker *maker, int64_t number)
{
    make_callback(maker, number, PAY_EV_ATTEMPT_SUCCEEDED);
}

/* A third each: noise, a good frame's beginning, a good frame with bytes changed in its body. */
static void make_malformed(struct maker *maker, int64_t number)
{
    uint8_t bytes[600];
    size_t len = 1 + (size_t)number * 7919 % sizeof bytes;
    pay_mem_random(bytes, sizeof bytes);
    if (number % 3 != 0) {
        const struct pay_bytes good = pay_buf_bytes(&maker->value);
        len = len < good.len ? len : good.len;
        memcpy(bytes, good.ptr, len);
        for (size_t i = 10; number % 3 == 2 && i < len; i += 5) {
            bytes[i] ^= 0xA5;
        }
    }
    produce(maker, (struct pay_bytes){bytes, len});
}

/* ---- the whole ---- */

struct kind {
    const char *name;
    void (*make)(struct maker *maker, int64_t number);
};

static const struct kind kinds[] = {
    {"create", make_create},
    {"processing", make_processing},
    {"succeeded", make_succeeded},
    {"malformed", make_malformed},
};

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    bench_fail(name, "is no kind of input");
}

static void open_maker(struct maker *maker, const char *brokers)
{
    struct pay_err err = {.status = PAY_OK};
    const struct pay_kafka_producer_options options = {
        .conf = {.bootstrap = brokers, .client_id = "bench-inputs"},
        .linger_ms = 5,
        .on_report = on_report,
        .ctx = maker,
    };
    maker->value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    maker->command = pay_buf_make(PAY_COMMAND_BYTES_MAX);
    pay_mem_random(maker->evidence, sizeof maker->evidence);
    must(pay_codec_new(&maker->codec, &err), &err);
    must(pay_kafka_producer_new(&options, &maker->producer, &err), &err);
}

static void close_maker(struct maker *maker)
{
    (void)pay_kafka_producer_close(maker->producer, 60000); /* A report tells of a failure. */
    maker->producer = pay_kafka_producer_free(maker->producer);
    maker->codec = pay_codec_free(maker->codec);
    maker->key = pay_ed25519_private_free(maker->key);
    pay_buf_free(&maker->value);
    pay_buf_free(&maker->command);
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        bench_fail("usage", "bench-inputs BROKERS TOPIC KIND FIRST COUNT ...");
    }
    static struct maker maker;
    struct pay_err err = {.status = PAY_OK};
    const struct kind *kind = find_kind(argv[3]);
    const int64_t first = bench_number(argv[4]);
    const int64_t count = bench_number(argv[5]);
    maker.topic = argv[2];
    maker.round = argc > 6 ? argv[6] : "";
    maker.poison_every = argc > 7 ? bench_number(argv[7]) : 0;
    open_maker(&maker, argv[1]);
    if (kind->make == make_create) {
        must(pay_ed25519_private_load(maker.round, &maker.key, &err), &err);
    }
    for (int64_t number = first; number < first + count; number++) {
        (void)snprintf(maker.payment, sizeof maker.payment, BENCH_PAYMENT, (long long)number);
        if (kind->make == make_malformed && number == first) {
            make_succeeded(&maker, number); /* The frame that is spoilt. */
        }
        kind->make(&maker, number);
        (void)pay_kafka_producer_poll(maker.producer, 0);
    }
    close_maker(&maker);
    (void)printf("records=%zu\n", maker.delivered);
    return 0;
}
