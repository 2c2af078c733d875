/* SPDX-License-Identifier: Apache-2.0 */
/** @file limits.h @brief Internal: maximum bytes of what several records name. */
#ifndef PAY_CONTRACTS_LIMITS_H
#define PAY_CONTRACTS_LIMITS_H

#include "common/core/types.h"

#define PAY_MAX_NAME (PAY_NAME_SIZE - 1) /**< psp, psp_account, method. */
#define PAY_MAX_MERCHANT (PAY_MERCHANT_SIZE - 1)
#define PAY_MAX_PAYMENT_ID (PAY_PAYMENT_ID_SIZE - 1)
#define PAY_MAX_ACTION_ID (PAY_ACTION_ID_SIZE - 1)
#define PAY_MAX_JOB_ID (PAY_JOB_ID_SIZE - 1)
#define PAY_MAX_REFERENCE (PAY_REFERENCE_SIZE - 1)
#define PAY_MAX_CODE (PAY_CODE_SIZE - 1)
#define PAY_MAX_ID 64         /**< command_id, idempotency keys, order numbers, key ids. */
#define PAY_MAX_AGGREGATE 255 /**< Also <caller>/<command_id>. */
#define PAY_MAX_DESCRIPTION 127
#define PAY_MAX_URL 2048
#define PAY_MAX_ACTION_DATA 16384 /**< An SDK's parameters as JSON text. */
#define PAY_MAX_SEALED 1049600    /**< A sealed dead letter is the largest. */
#define PAY_MAX_DEAD_HEADER 65536
#define PAY_MAX_EVIDENCE 524288
#define PAY_MAX_HEADER_NAME 256
#define PAY_SHA256 32

#endif /* PAY_CONTRACTS_LIMITS_H */
