/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kafka_error.h
 * @brief What a librdkafka code means for the caller: one table, kafka_error.c.
 *
 * Codes are librdkafka's rd_kafka_resp_err_t as int. An unlisted code is PAY_RETRY for a consumer
 * and PAY_UNKNOWN for a delivery report (then the persisted status decides).
 */
#ifndef PAY_IO_KAFKA_KAFKA_ERROR_H
#define PAY_IO_KAFKA_KAFKA_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"

/** What a delivery report says about the log. */
enum pay_kafka_persisted {
    PAY_KAFKA_NOT_PERSISTED,
    PAY_KAFKA_POSSIBLY_PERSISTED,
    PAY_KAFKA_PERSISTED,
    PAY_KAFKA_PERSISTED_COUNT
};

/**
 * @brief What a delivery report says about the log, of its rd_kafka_msg_status_t and its offset.
 *
 * librdkafka takes the acknowledgement of a later record for all before it, and reports those as
 * persisted, without an offset: a guess, hence POSSIBLY.
 */
enum pay_kafka_persisted pay_kafka_persisted_of(int message_status, int64_t offset);
/**
 * @brief Class of a delivery report or of a refused produce call.
 * @return PAY_OK for code 0 of a call, or of a report of what is persisted. PAY_RETRY: certainly
 * not in the log. PAY_UNKNOWN: may be in the log. PAY_REJECT: this very record will never be taken
 * (too large, invalid). A topic that is not there or not allowed to us refuses every record:
 * PAY_RETRY. PAY_FATAL: the producer is finished and must be rebuilt.
 */
enum pay_status pay_kafka_produce_class(int code, enum pay_kafka_persisted persisted);
/** @brief Class of an error from poll, commit or an admin call: PAY_OK, PAY_RETRY, PAY_REJECT,
 * PAY_FATAL. */
enum pay_status pay_kafka_client_class(int code);
/** @return it is the size of a record that was refused. */
bool pay_kafka_is_too_large(int code);
/** @return Kafka has said that the topic takes nothing from us now: no right, or it is not there.
 */
bool pay_kafka_is_refusal(int code);
/** @return the producer's own queue is full: the topic has said nothing. */
bool pay_kafka_is_full(int code);
/** @return librdkafka's name such as "_MSG_TIMED_OUT"; never NULL. */
const char *pay_kafka_error_name(int code);

#endif /* PAY_IO_KAFKA_KAFKA_ERROR_H */
