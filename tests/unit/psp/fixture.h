/* SPDX-License-Identifier: Apache-2.0 */
/** @file fixture.h @brief A Stripe account, an arena and files, for the tests of adapters. */
#ifndef PAY_TEST_PSP_FIXTURE_H
#define PAY_TEST_PSP_FIXTURE_H

#include "common/base/buf.h"
#include "common/json/json.h"
#include "common/psp/adapter.h"

#define PAY_TEST_KEYS_MAX 4

struct fixture {
    struct pay_psp_account account;
    struct pay_secret *secrets[PAY_TEST_KEYS_MAX + 1];
    struct pay_arena *arena;
    struct pay_buf file;
    struct pay_buf text; /**< Scratch of a test. */
    struct pay_json *doc;
};

/** cmocka set-up: test account "stripe-a" with callback key "whsec-a" = whsec_test_secret. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/** Replace the callback keys; fails the test when one is refused. */
void fixture_keys(struct fixture *fix, const struct pay_bytes *keys, size_t count);
/** Read and parse a JSON file below tests/; the former document ends. */
const struct pay_json_value *fixture_json(struct fixture *fix, const char *path);
/** Run @p check for every .json file of a folder below tests/. @return how many there were. */
size_t fixture_each_file(struct fixture *fix, const char *folder,
                         void (*check)(struct fixture *fix, const char *name));
/** Write a value as compact JSON into fix->text (members in the order of the file). */
void fixture_write(struct pay_buf *out, const struct pay_json_value *value);

#endif /* PAY_TEST_PSP_FIXTURE_H */
