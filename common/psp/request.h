/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file request.h
 * @brief A built request as bytes, to be sealed into the gate row and sent again unchanged.
 *
 * The text holds no credentials (adapter.h: authorize()), but it holds payment method references:
 * seal it. Threads: any.
 */
#ifndef PAY_PSP_REQUEST_H
#define PAY_PSP_REQUEST_H

#include "common/base/buf.h"
#include "common/psp/adapter.h"

/** @brief Append the stored form; check out->failed. */
void pay_psp_request_write(const struct pay_psp_request *request, struct pay_buf *out);
/** @return PAY_REJECT: not what pay_psp_request_write() made; PAY_RETRY: the arena is full. */
PAY_MUST_CHECK enum pay_status pay_psp_request_read(struct pay_bytes stored,
                                                    struct pay_arena *arena,
                                                    struct pay_psp_request *ret_request,
                                                    struct pay_err *err);

#endif /* PAY_PSP_REQUEST_H */
