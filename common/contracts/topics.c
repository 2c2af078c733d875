/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/topics.h"

#include "common/base/assert.h"

#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

#define DAYS_MS(days_) (INT64_C(86400000) * (days_))
/* Key, headers (a command's secrets among them) and the frame of a record batch. */
#define BESIDE_VALUE (128 * 1024)

static const struct pay_topic_spec specs[PAY_TOPIC_COUNT] = {
    [PAY_TOPIC_NOTIFICATIONS] = {"notifications", PAY_RECORD_RAW_NOTIFICATION, DAYS_MS(7),
                                 (int)PAY_RAW_NOTIFICATION_BYTES_MAX + BESIDE_VALUE, true, "any",
                                 "edge gateways -> ingest"},
    [PAY_TOPIC_COMMANDS] = {"commands", PAY_RECORD_COMMAND, DAYS_MS(7),
                            (int)PAY_COMMAND_BYTES_MAX + BESIDE_VALUE, true, "payment_id",
                            "upstream -> ingest"},
    [PAY_TOPIC_INPUTS] = {"inputs", PAY_RECORD_PAYMENT_INPUT, DAYS_MS(7),
                          (int)PAY_PAYMENT_INPUT_BYTES_MAX + BESIDE_VALUE, false, "payment_id",
                          "ingest, recovery -> processor"},
    [PAY_TOPIC_PSP_JOBS] = {"psp-jobs", PAY_RECORD_PSP_JOB, DAYS_MS(7),
                            (int)PAY_PSP_JOB_BYTES_MAX + BESIDE_VALUE, false, "payment_id",
                            "publisher, recovery -> ingest/psp"},
    [PAY_TOPIC_EVENTS] = {"events", PAY_RECORD_PAYMENT_EVENT, DAYS_MS(30),
                          (int)PAY_PAYMENT_EVENT_BYTES_MAX + BESIDE_VALUE, true, "payment_id",
                          "publisher -> downstream"},
    [PAY_TOPIC_DLQ] = {"dlq", PAY_RECORD_DEAD_LETTER, DAYS_MS(30),
                       (int)PAY_DEAD_LETTER_BYTES_MAX + BESIDE_VALUE, false, "original key",
                       "any -> operators"},
};

const struct pay_topic_spec *pay_topic_spec(enum pay_topic topic)
{
    PAY_ASSERT((unsigned)topic < PAY_TOPIC_COUNT);
    return &specs[topic];
}

static bool is_topic_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool pay_topic_name(char dst[PAY_TOPIC_NAME_SIZE], enum pay_topic topic, const char *prefix)
{
    const char *before = prefix == NULL ? PAY_TOPIC_PREFIX_DEFAULT : prefix;
    bool done = true;

    for (const char *at = before; *at != '\0'; at++) {
        done = done && is_topic_char(*at);
    }
    const int len = snprintf(dst, PAY_TOPIC_NAME_SIZE, "%s%s", before, pay_topic_spec(topic)->name);
    done = done && len > 0 && len < PAY_TOPIC_NAME_SIZE;
    if (!done) {
        dst[0] = '\0';
    }
    return done;
}

bool pay_topic_parse(struct pay_str name, const char *prefix, enum pay_topic *ret_topic)
{
    for (int topic = 0; topic < PAY_TOPIC_COUNT; topic++) {
        char full[PAY_TOPIC_NAME_SIZE];
        if (pay_topic_name(full, (enum pay_topic)topic, prefix) && pay_str_eq_c(name, full)) {
            *ret_topic = (enum pay_topic)topic;
            return true;
        }
    }
    return false;
}
