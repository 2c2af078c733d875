/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/integration/processor/world.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/base/file.h"
#include "common/contracts/keys.h"
#include "common/core/id.h"

/* The environment and the process are touched by the test's own thread only. */
/* NOLINTBEGIN(concurrency-mt-unsafe) */

#define CONTROL                                                             \
    " \"FORCE_CLOSE_UNKNOWN\", \"CORRECT_STATE\", \"RELEASE_RESERVATION\"," \
    " \"OVERRIDE_BLOCK\", \"APPROVE\", \"DECLINE\""
#define OPERATOR(n_)                                                             \
    " {\"id\": \"operator-" n_ "\", \"kind\": \"operator\", \"keys\": [{\"id\":" \
    " \"operator-" n_ "-a\", \"file\": \"operator-" n_ ".pub\"}], \"may\":"      \
    " [{\"merchant\": \"*\", \"commands\": [" CONTROL "]}]}"

static const char accounts_text[] =
    "{\"version\": 1, \"merchants\": [{\"id\": \"other\","
    " \"limits\": {\"commands_per_s\": 200, \"amount_max_minor\": {\"EUR\": 1000000}},"
    " \"order_expires_after_s\": 86400, \"failover_window_s\": 900, \"retry_until_expiry\": true,"
    " \"authorization_end\": \"void\","
    " \"refund_threshold_minor\": {\"EUR\": {\"per_payment\": 0, \"per_day\": 0}},"
    " \"default_routes\": []}, {\"id\": \"acme\","
    " \"limits\": {\"commands_per_s\": 200, \"amount_max_minor\": {\"EUR\": 1000000}},"
    " \"order_expires_after_s\": 86400, \"failover_window_s\": 900, \"retry_until_expiry\": true,"
    " \"authorization_end\": \"void\", \"manual_capture\": true,"
    " \"refund_threshold_minor\": {\"EUR\": {\"per_payment\": 150, \"per_day\": 200}},"
    " \"default_routes\": [{\"method\": \"card\", \"currency\": \"EUR\", \"min_minor\": 1,"
    " \"max_minor\": 1000000, \"psp_account\": \"stripe-acme\", \"failover_on_not_found\": "
    "false}]}, {\"id\": \"globex\","
    " \"limits\": {\"commands_per_s\": 200, \"amount_max_minor\": {\"EUR\": 1000000}},"
    " \"order_expires_after_s\": 86400, \"failover_window_s\": 900, \"retry_until_expiry\": true,"
    " \"authorization_end\": \"void\","
    " \"refund_threshold_minor\": {\"EUR\": {\"per_payment\": 0, \"per_day\": 0}},"
    " \"default_routes\": []}],"
    " \"psp_accounts\": [{\"id\": \"stripe-acme\", \"psp\": \"stripe\", \"merchant\": \"acme\","
    " \"live\": false, \"endpoint\": \"https://api.stripe.com\","
    " \"settings\": {\"api_version\": \"2024-06-20\"},"
    " \"credentials\": {\"secret_key\": {\"id\": \"sk-a\", \"file\": \"sk-a\"}},"
    " \"callback_keys\": [{\"id\": \"whsec-a\", \"file\": \"whsec-a\"}],"
    " \"answers\": \"custody\", \"foreign_callbacks\": \"ignore\","
    " \"limits\": {\"callbacks_per_s\": 200, \"calls_per_s\": 50, \"in_flight\": 32, \"queued\": "
    "256},"
    " \"timeouts_ms\": {\"connect\": 2000, \"total\": 20000},"
    " \"unknown\": {\"longest_processing_s\": 60, \"visibility_grace_s\": 90,"
    " \"not_founds_needed\": 3, \"query_first_s\": 5, \"query_max_s\": 900,"
    " \"person_after_s\": 3600}}],"
    " \"principals\": [{\"id\": \"shop\", \"kind\": \"service\","
    " \"keys\": [{\"id\": \"shop-a\", \"file\": \"shop.pub\"}], \"may\": [{\"merchant\": \"acme\","
    " \"commands\": [\"CREATE_PAYMENT\", \"START_ATTEMPT\", \"CHANGE_METHOD\", "
    "\"CONTINUE_ATTEMPT\","
    " \"CANCEL_PAYMENT\", \"CAPTURE\", \"REQUEST_REFUND\"]}, {\"merchant\": \"globex\", "
    "\"commands\": [\"CANCEL_PAYMENT\"]}]},"
    " {\"id\": \"operator-1\", \"kind\": \"operator\","
    " \"keys\": [{\"id\": \"operator-1-a\", \"file\": \"operator.pub\"}], \"may\": [{\"merchant\":"
    " \"*\", \"commands\": [\"PAUSE_ROUTE\", \"RESUME_ROUTE\", \"REPLAY_INPUT\", "
    "\"REPLAY_EVENT\", \"DISCARD_EVENT\", \"RESOLVE_CASE\", \"REQUEST_REFUND\"," CONTROL
    "]}]}," OPERATOR("2") "," OPERATOR("3") "]}";

void world_must(struct world *world, enum pay_status status)
{
    if (status != PAY_OK) {
        fail_msg("%s: %s: %s", pay_status_name(status), world->err.op, world->err.text);
    }
}

static char *path(struct world *world, const char *name)
{
    static char paths[8][512];
    static int at;
    char *text = paths[at++ % 8];
    (void)snprintf(text, sizeof(paths[0]), "%s/%s", world->dir, name);
    return text;
}

static void write_text(struct world *world, const char *name, const char *text)
{
    const struct pay_bytes content = {(const uint8_t *)text, strlen(text)};
    world_must(world, pay_file_write(path(world, name), content, true, &world->err));
}

static struct pay_ed25519_private *make_key(struct world *world, const char *name)
{
    char public_name[64], private_name[64];
    struct pay_ed25519_private *key = NULL;
    (void)snprintf(public_name, sizeof(public_name), "%s.pub", name);
    (void)snprintf(private_name, sizeof(private_name), "%s.key", name);
    world_must(world, pay_ed25519_generate_files(path(world, private_name),
                                                 path(world, public_name), &world->err));
    world_must(world, pay_ed25519_private_load(path(world, private_name), &key, &world->err));
    return key;
}

static void make_files(struct world *world)
{
    struct pay_buf ring = pay_buf_make(4096);
    (void)snprintf(world->dir, sizeof(world->dir), "/tmp/payfact-processor-test-XXXXXX");
    assert_non_null(mkdtemp(world->dir));
    world->shop = make_key(world, "shop");
    world->stranger = make_key(world, "stranger");
    world->operator_1 = make_key(world, "operator");
    world->operator_2 = make_key(world, "operator-2");
    world->operator_3 = make_key(world, "operator-3");
    write_text(world, "sk-a", "sk_test_0000000000000000");
    write_text(world, "whsec-a", "whsec_0000000000000000");
    write_text(world, "accounts.json", accounts_text);
    world_must(world, pay_keyring_generate(NULL, "test", &ring, &world->err));
    write_text(world, "keyring", pay_buf_str(&ring).ptr);
    pay_buf_free(&ring);
    (void)snprintf(world->accounts_path, sizeof(world->accounts_path), "%s/accounts.json",
                   world->dir);
    (void)snprintf(world->keyring_path, sizeof(world->keyring_path), "%s/keyring", world->dir);
}

static bool on_wait(void *ctx, int ms)
{
    struct world *world = ctx;
    world->waits++;
    (void)poll(NULL, 0, ms > 20 ? 20 : ms);
    return world->waits_max == 0 || world->waits < world->waits_max;
}

static bool on_letter(void *ctx, const struct pay_kafka_msg *msg, struct pay_bytes letter)
{
    struct world *world = ctx;
    (void)msg;
    if (world->refuse_letters) {
        world->refuse_letters = false;
        return false;
    }
    assert_true(world->letter_count < LETTERS_MAX);
    world->letters[world->letter_count++] = pay_arena_bytes(world->arena, letter);
    return true;
}

struct pay_worker *world_worker(struct world *world)
{
    struct pay_worker *worker = NULL;
    const struct pay_worker_options options = {
        .cfg = &world->cfg,
        .metrics = world->metrics,
        .keyring = world->keyring,
        .partitions = PARTITIONS,
        .batch_bytes_max = world->batch_bytes_max,
        .try_bytes_max = world->try_bytes_max,
        .wait = on_wait,
        .dead_letter = on_letter,
        .ctx = world,
    };
    world_must(world, pay_worker_open(&options, &worker, &world->err));
    return worker;
}

int world_open(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    *state = world;
    pay_testdb_open(&world->db);
    make_files(world);
    struct pay_buf problems = pay_buf_make(65536);
    if (pay_accounts_load(world->accounts_path, world->dir, &world->accounts, &problems,
                          &world->err) != PAY_OK) {
        (void)fprintf(stderr, "%s\n", pay_buf_str(&problems).ptr);
        return 1;
    }
    pay_buf_free(&problems);
    world_must(world, pay_keyring_load(world->keyring_path, &world->keyring, &world->err));
    world_must(world, pay_codec_new(&world->codec, &world->err));
    world->arena = pay_arena_new((size_t)64 << 20);
    (void)snprintf(world->cfg.common.pg_conninfo, sizeof(world->cfg.common.pg_conninfo),
                   "%s options='-c role=payfact_processor'", world->db.conninfo);
    (void)pay_str_copy(world->cfg.common.schema_write, sizeof(world->cfg.common.schema_write),
                       PAY_STR("current"));
    world->cfg.batch_records_max = RECORDS_MAX;
    world->cfg.orphan_budget_s = 3600;
    world->cfg.orphan_first_ms = 1000;
    world->cfg.retry_max_ms = 100;
    world->worker = world_worker(world);
    return 0;
}

int world_close(void **state)
{
    struct world *world = *state;
    char command[512];
    world->worker = pay_worker_close(world->worker);
    world->codec = pay_codec_free(world->codec);
    world->keyring = pay_keyring_free(world->keyring);
    pay_accounts_release(world->accounts);
    world->shop = pay_ed25519_private_free(world->shop);
    world->stranger = pay_ed25519_private_free(world->stranger);
    world->operator_1 = pay_ed25519_private_free(world->operator_1);
    world->operator_2 = pay_ed25519_private_free(world->operator_2);
    world->operator_3 = pay_ed25519_private_free(world->operator_3);
    world->arena = pay_arena_free(world->arena);
    pay_testdb_close(&world->db);
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", world->dir);
    const int removed = system(command); /* a folder of our own making */
    (void)removed;                       /* It is in the temporary folder: no test fails for it. */
    free(world);
    return 0;
}

const char *payment_id(int number)
{
    static char ids[100][PAY_PAYMENT_ID_SIZE];
    (void)snprintf(ids[number], sizeof(ids[0]), "01ARZ3NDEKTSV4RRFFQ69G5%c%c%c", 'A',
                   '0' + number / 10, '0' + number % 10);
    return ids[number];
}

void add_bytes(struct world *world, const char *key, const void *value, size_t len)
{
    assert_true(world->count < RECORDS_MAX);
    const struct pay_bytes bytes = {value, len};
    const struct pay_str text = pay_arena_str(world->arena, pay_str_of(key));
    world->msgs[world->count++] = (struct pay_kafka_msg){
        .topic = "payfact.inputs",
        .partition = 0,
        .offset = world->offset++,
        .key = {(const uint8_t *)text.ptr, text.len},
        .value = pay_arena_bytes(world->arena, bytes),
        .timestamp_ms = 1,
    };
}

void add_input(struct world *world, const struct pay_payment_input *input, const char *key)
{
    struct pay_buf value = pay_buf_make(PAY_PAYMENT_INPUT_BYTES_MAX);
    world_must(world, pay_payment_input_encode(world->codec, input, &value, &world->err));
    add_bytes(world, key, value.data, value.len);
    pay_buf_free(&value);
}

void add_command(struct world *world, const struct pay_command *command,
                 const struct pay_ed25519_private *key, const char *key_id)
{
    uint8_t signature[PAY_ED25519_SIGNATURE_BYTES];
    uint8_t fingerprint[8];
    struct pay_buf message = pay_buf_make(PAY_COMMAND_BYTES_MAX + 64);
    struct pay_buf value = pay_buf_make(PAY_COMMAND_BYTES_MAX);
    const struct pay_sealed params = {
        .key_id = PAY_STR("test"),
        .ciphertext = {(const uint8_t *)"sealed-parameters-of-route-0", 28},
        .bound_to = PAY_STR("params/x/shop/create/0"),
    };
    world_must(world, pay_command_encode(world->codec, command, &value, &world->err));
    pay_buf_add(&message, PAY_COMMAND_SIGNATURE_PREFIX, PAY_COMMAND_SIGNATURE_PREFIX_BYTES);
    pay_buf_add(&message, value.data, value.len);
    pay_ed25519_sign(key, pay_buf_bytes(&message), signature);
    pay_fingerprint_put(fingerprint, pay_codec_fingerprint(world->codec, PAY_RECORD_COMMAND));
    const struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = world->refusal == NULL ? PAY_WIRE_COMMAND : PAY_WIRE_REJECTED_COMMAND,
        .source = PAY_SOURCE_MERCHANT,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .payment_id = command->payment_id.len > 0 ? command->payment_id : (struct pay_str){NULL, 0},
        .command = {.value = pay_buf_bytes(&value),
                    .signature = {signature, sizeof(signature)},
                    .key_id = pay_str_of(key_id),
                    .writer_fingerprint = {fingerprint, sizeof(fingerprint)},
                    .params = &params,
                    .param_count = command->type == PAY_CMD_CREATE_PAYMENT ? 1 : 0,
                    .refusal = pay_str_of(world->refusal),
                    .redirect_data = command->type == PAY_CMD_CONTINUE_ATTEMPT
                                         ? params
                                         : (struct pay_sealed){.ciphertext = {NULL, 0}}},
        .received_at_us = 1,
    };
    add_input(world, &input,
              command->payment_id.len > 0 ? command->payment_id.ptr : "stripe/stripe-acme");
    pay_buf_free(&message);
    pay_buf_free(&value);
}

struct pay_command create_command(const char *payment)
{
    return (struct pay_command){
        .command_id = pay_str_of(payment),
        .type = PAY_CMD_CREATE_PAYMENT,
        .caller = PAY_STR("shop"),
        .merchant_id = PAY_STR("acme"),
        .payment_id = pay_str_of(payment),
        .issued_at_us = 1,
        .create_payment = {.merchant_order_no = pay_str_of(payment),
                           .amount = {.amount_minor = 100, .currency = "EUR"},
                           .capture_mode = PAY_CAPTURE_AUTOMATIC,
                           .retry_until_expiry = -1,
                           .description = PAY_STR("socks"),
                           .routes = {{.psp = PAY_STR("stripe"),
                                       .psp_account = PAY_STR("stripe-acme"),
                                       .method = PAY_STR("card")}},
                           .route_count = 1,
                           .start = true},
    };
}

void add_create(struct world *world, const char *payment)
{
    const struct pay_command command = create_command(payment);
    add_command(world, &command, world->shop, "shop-a");
}

struct pay_payment_input callback(const char *payment, enum pay_event_type type,
                                  const char *transport_key)
{
    static char number[PAY_ACTION_ID_SIZE];
    static char reference[64];
    static char business[PAY_BUSINESS_KEY_SIZE];
    pay_id_action(number, payment, 'A', 1);
    (void)snprintf(reference, sizeof(reference), "pi_%s", payment);
    struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_PSP_EVENT,
        .source = PAY_SOURCE_WEBHOOK,
        .evidence_level = PAY_EVIDENCE_WEBHOOK,
        .payment_id = pay_str_of(payment),
        .event = {.type = type,
                  .psp = PAY_STR("stripe"),
                  .psp_account = PAY_STR("stripe-acme"),
                  .merchant_request_no = pay_str_of(number),
                  .provider_payment_id = pay_str_of(reference),
                  .references = {{PAY_REF_INTENT, pay_str_of(reference)}},
                  .reference_count = 1,
                  .has_amount = true,
                  .amount = {.amount_minor = 100, .currency = "EUR"},
                  .normalized_result = PAY_STR("RESULT")},
        .transport_key = pay_str_of(transport_key),
        .received_at_us = 1,
        .evidence = {.ciphertext = {(const uint8_t *)"0123456789012345678901234567890123", 34},
                     .key_id = PAY_STR("test"),
                     .sha256 = {(const uint8_t *)"01234567890123456789012345678901", 32},
                     .verified_by = PAY_STR("whsec-a")},
    };
    assert_true(pay_business_key(business, &input.event));
    input.business_key = pay_str_of(business);
    return input;
}

void add_callback(struct world *world, const char *payment, enum pay_event_type type,
                  const char *transport_key)
{
    const struct pay_payment_input input = callback(payment, type, transport_key);
    add_input(world, &input, payment);
}

void add_replay(struct world *world, const char *transport_key)
{
    const struct pay_payment_input input = {
        .input_id = PAY_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
        .kind = PAY_WIRE_REPLAY,
        .source = PAY_SOURCE_LOCAL,
        .evidence_level = PAY_EVIDENCE_LOCAL,
        .replay = {PAY_STR("stripe"), PAY_STR("stripe-acme"), pay_str_of(transport_key)},
        .received_at_us = 1,
    };
    add_input(world, &input, "x");
}

enum pay_status turn_with(struct world *world, struct pay_worker *worker)
{
    enum pay_status status =
        pay_worker_turn(worker, world->accounts, world->msgs, world->count, &world->err);
    world->count = 0;
    return status;
}

void turn(struct world *world)
{
    world_must(world, turn_with(world, world->worker));
}

int64_t number(struct world *world, const char *sql)
{
    return pay_testdb_number(&world->db, sql);
}

const char *published(struct world *world)
{
    return pay_testdb_text(
        &world->db, "SELECT string_agg(replace(headers[array_position(headers, 'ce_type') + 1],"
                    " 'payfact.', ''), ' ' ORDER BY id) FROM payfact.payment_outbox"
                    " WHERE topic = 'events'");
}

/* NOLINTEND(concurrency-mt-unsafe) */
