/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file headers.h
 * @brief Kafka headers: names, trace context, and the CloudEvents set of topic events.
 *
 * Nothing is owned; what is built is borrowed from the record and the scratch given.
 */
#ifndef PAY_CONTRACTS_HEADERS_H
#define PAY_CONTRACTS_HEADERS_H

#include "common/contracts/payment_event.h"

#define PAY_HEADER_KEY_ID "payfact-key-id"
#define PAY_HEADER_SIGNATURE "payfact-signature"
#define PAY_HEADER_SECRETS "payfact-secrets"
#define PAY_HEADER_TRACEPARENT "traceparent"
#define PAY_HEADER_CE_ID "ce_id"
#define PAY_HEADER_CE_SOURCE "ce_source"
#define PAY_HEADER_CE_TYPE "ce_type"
#define PAY_HEADER_CE_TIME "ce_time"
#define PAY_HEADER_CE_SPECVERSION "ce_specversion"
#define PAY_HEADER_CE_SUBJECT "ce_subject"
#define PAY_HEADER_CONTENT_TYPE "content-type"

#define PAY_CE_SOURCE "/payfact"
#define PAY_CE_SPECVERSION "1.0"
#define PAY_CE_TYPE_PREFIX "payfact."
#define PAY_CE_CONTENT_TYPE "application/avro"

#define PAY_TRACEPARENT_LEN 55
#define PAY_EVENT_HEADERS_MAX 8

struct pay_header {
    const char *name; /**< Static. */
    struct pay_str value;
};

/** Room for the values that are made; lives as long as the headers are used. */
struct pay_event_header_scratch {
    char time[28];
    char type[64];
};

/**
 * @brief The headers of one PaymentEvent: CloudEvents binary mode, and traceparent where it has
 * one. ce_subject is the payment_id, or the aggregate id where that is empty.
 * @return number of headers, PAY_EVENT_HEADERS_MAX at most.
 */
size_t pay_event_headers(const struct pay_payment_event *event,
                         struct pay_event_header_scratch *scratch,
                         struct pay_header headers[PAY_EVENT_HEADERS_MAX]);

/** @return true for a W3C trace context of version 00 whose ids are not all zero, lower-case hex.
 */
bool pay_traceparent_valid(struct pay_str text);

#endif /* PAY_CONTRACTS_HEADERS_H */
