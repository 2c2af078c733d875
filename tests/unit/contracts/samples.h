/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file samples.h
 * @brief A value of every record in which everything that may be set together is set.
 *
 * Text is its field's own name, a number is sample_number() of the name, an enum the second symbol,
 * a flag is not its default, a list has two items. test_interop.py makes the same value from the
 * schema alone, so a row that is bound to the wrong member is seen.
 */
#ifndef PAY_TESTS_CONTRACTS_SAMPLES_H
#define PAY_TESTS_CONTRACTS_SAMPLES_H

#include "common/contracts/command_record.h"
#include "common/contracts/dead_letter.h"
#include "common/contracts/payment_event.h"
#include "common/contracts/payment_input.h"
#include "common/contracts/psp_job.h"
#include "common/contracts/raw_notification.h"

#define SAMPLE_PAYMENT_ID "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define SAMPLE_TRACEPARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

union any_record {
    struct pay_raw_notification raw_notification;
    struct pay_command command;
    struct pay_command_secrets command_secrets;
    struct pay_payment_input payment_input;
    struct pay_psp_job psp_job;
    struct pay_payment_event payment_event;
    struct pay_dead_letter dead_letter;
};

struct record_case {
    size_t variants; /* Kinds of the record: command types, input kinds; else 1. */
    void (*make)(union any_record *into, size_t variant);       /* Everything set. */
    void (*make_small)(union any_record *into, size_t variant); /* Only what must be. */
    enum pay_status (*encode)(struct pay_codec *codec, const union any_record *record,
                              struct pay_buf *out, struct pay_err *err);
    enum pay_status (*decode)(struct pay_codec *codec, struct pay_bytes value,
                              struct pay_arena *arena, union any_record *ret_record,
                              struct pay_err *err);
};

extern const struct record_case record_cases[PAY_RECORD_COUNT];

int64_t sample_number(const char *name);

#endif /* PAY_TESTS_CONTRACTS_SAMPLES_H */
