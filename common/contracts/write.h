/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file write.h
 * @brief Internal: a C struct written by avro-c.
 *
 * The struct is shown to avro-c as an Avro value (avro_value_iface_t) through its plan, so nothing
 * is copied. Before that the struct is checked against the same bounds as when reading, and
 * measured: avro-c cannot fail afterwards, which matters because its error text is one global.
 */
#ifndef PAY_CONTRACTS_WRITE_H
#define PAY_CONTRACTS_WRITE_H

#include "common/base/buf.h"
#include "common/contracts/check.h"
#include "common/contracts/plan.h"

/**
 * @brief Check and measure.
 * @param ret_bytes of the body. @return PAY_REJECT as decoding would.
 */
PAY_MUST_CHECK enum pay_status pay_write_measure(const struct pay_check *check,
                                                 const struct pay_node *root, const void *from,
                                                 size_t *ret_bytes);
/**
 * @brief Write what was measured.
 * @param writer borrowed; a memory writer whose destination is set here.
 * @param dst of @p bytes, as measured.
 * @return PAY_FATAL when avro-c refuses (a bug here).
 */
PAY_MUST_CHECK enum pay_status pay_write_record(const struct pay_check *check,
                                                const struct pay_node *root, const void *from,
                                                avro_writer_t writer, uint8_t *dst, size_t bytes);

#endif /* PAY_CONTRACTS_WRITE_H */
