/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/headers.h"

#include "common/base/clock.h"

#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

size_t pay_event_headers(const struct pay_payment_event *event,
                         struct pay_event_header_scratch *scratch,
                         struct pay_header headers[PAY_EVENT_HEADERS_MAX])
{
    size_t count = 0;

    pay_clock_format(event->decided_at_us, scratch->time);
    (void)snprintf(scratch->type, sizeof scratch->type, PAY_CE_TYPE_PREFIX "%s",
                   pay_fact_type_name(event->type)); /* The longest name fits, by a test. */
    headers[count++] = (struct pay_header){PAY_HEADER_CE_ID, event->event_id};
    headers[count++] = (struct pay_header){PAY_HEADER_CE_SOURCE, PAY_STR(PAY_CE_SOURCE)};
    headers[count++] = (struct pay_header){PAY_HEADER_CE_TYPE, pay_str_of(scratch->type)};
    headers[count++] = (struct pay_header){PAY_HEADER_CE_TIME, pay_str_of(scratch->time)};
    headers[count++] = (struct pay_header){PAY_HEADER_CE_SPECVERSION, PAY_STR(PAY_CE_SPECVERSION)};
    headers[count++] = (struct pay_header){
        PAY_HEADER_CE_SUBJECT, event->payment_id.len > 0 ? event->payment_id : event->aggregate_id};
    headers[count++] = (struct pay_header){PAY_HEADER_CONTENT_TYPE, PAY_STR(PAY_CE_CONTENT_TYPE)};
    if (pay_traceparent_valid(event->traceparent)) {
        headers[count++] = (struct pay_header){PAY_HEADER_TRACEPARENT, event->traceparent};
    }
    return count;
}

/* Lower-case hex of len characters, and not all zero unless it may be. */
static bool is_hex_part(const char *at, size_t len, bool may_be_zero)
{
    bool is_zero = true;

    for (size_t i = 0; i < len; i++) {
        if (!((at[i] >= '0' && at[i] <= '9') || (at[i] >= 'a' && at[i] <= 'f'))) {
            return false;
        }
        is_zero = is_zero && at[i] == '0';
    }
    return may_be_zero || !is_zero;
}

bool pay_traceparent_valid(struct pay_str text)
{
    /* 00-<32 trace id>-<16 parent id>-<2 flags> */
    return text.ptr != NULL && text.len == PAY_TRACEPARENT_LEN && memcmp(text.ptr, "00-", 3) == 0 &&
           is_hex_part(text.ptr + 3, 32, false) && text.ptr[35] == '-' &&
           is_hex_part(text.ptr + 36, 16, false) && text.ptr[52] == '-' &&
           is_hex_part(text.ptr + 53, 2, true);
}
