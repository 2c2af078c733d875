/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file world.h
 * @brief What the processor's tests share: a database, accounts and keys in a folder of their own,
 * workers, and records as ingest would have produced them.
 */
#ifndef PAY_TESTS_PROCESSOR_WORLD_H
#define PAY_TESTS_PROCESSOR_WORLD_H

#include "services/processor/worker.h"
#include "tests/support/testdb.h"

#define RECORDS_MAX 600
#define LETTERS_MAX 64
#define PARTITIONS 12

struct world {
    struct pay_testdb db;
    char dir[256];
    char accounts_path[320], keyring_path[320];
    struct pay_processor_settings cfg;
    struct pay_keyring *keyring;
    struct pay_accounts *accounts;
    struct pay_ed25519_private *shop, *stranger, *operator_1, *operator_2, *operator_3;
    struct pay_codec *codec;
    struct pay_arena *arena; /**< Of records. */
    struct pay_worker *worker;
    struct pay_metric *metrics[PAY_PM_COUNT]; /**< NULL: not counted. */
    struct pay_kafka_msg msgs[RECORDS_MAX];
    size_t count;
    int64_t offset;
    struct pay_bytes letters[LETTERS_MAX]; /**< Dead letters produced. */
    size_t letter_count;
    size_t batch_bytes_max, try_bytes_max; /**< Of workers to be made; 0: the default. */
    bool refuse_letters;
    const char *refusal; /**< Of commands to be added: the relay's; NULL: it let them through. */
    int waits;           /**< Calls of wait(). */
    int waits_max;       /**< It gives up after so many; 0: never. */
    struct pay_err err;
};

int world_open(void **state);
int world_close(void **state);
/** Another worker on the same database. */
struct pay_worker *world_worker(struct world *world);
/** Ends the test unless the status is PAY_OK. */
void world_must(struct world *world, enum pay_status status);

/** A new payment id; number 0..99. */
const char *payment_id(int number);

/* Each adds one record to the batch in hand. */
void add_bytes(struct world *world, const char *key, const void *value, size_t len);
void add_input(struct world *world, const struct pay_payment_input *input, const char *key);
void add_command(struct world *world, const struct pay_command *command,
                 const struct pay_ed25519_private *key, const char *key_id);
/** CREATE_PAYMENT of 100 EUR on stripe-acme by the shop, command id "create". */
struct pay_command create_command(const char *payment);
void add_create(struct world *world, const char *payment);
/** A verified callback of the first attempt. */
struct pay_payment_input callback(const char *payment, enum pay_event_type type,
                                  const char *transport_key);
void add_callback(struct world *world, const char *payment, enum pay_event_type type,
                  const char *transport_key);
void add_replay(struct world *world, const char *transport_key);

/** Decide the batch in hand and empty it. */
enum pay_status turn_with(struct world *world, struct pay_worker *worker);
void turn(struct world *world);

int64_t number(struct world *world, const char *sql);
/** Types of the events in the outbox, in order, separated by blanks. */
const char *published(struct world *world);

#endif /* PAY_TESTS_PROCESSOR_WORLD_H */
