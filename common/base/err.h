/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file err.h
 * @brief What a fallible call answers: a class that says what may be done next, and a text.
 *
 * The caller supplies struct pay_err (NULL is allowed: the class is still returned). No allocation.
 * Outputs named ret_x are set on PAY_OK only.
 */
#ifndef PAY_BASE_ERR_H
#define PAY_BASE_ERR_H

#include "common/base/attr.h"

/** Classes of failure; each says what the caller may do. */
enum pay_status {
    PAY_OK = 0,
    PAY_RETRY,   /**< Surely not applied: try again. */
    PAY_UNKNOWN, /**< May have been applied: read back, never guess. */
    PAY_REJECT,  /**< This input can never work (poison): refuse it or dead-letter it. */
    PAY_FATAL,   /**< Configuration, schema, fenced: the process cannot go on. */
    PAY_STATUS_COUNT
};

struct pay_err {
    enum pay_status status;
    int code;       /**< The library's own code, 0 where it has none. */
    const char *op; /**< Static text: what was being done. */
    char text[160]; /**< What failed, lower case, no full stop, no payload, no secret. */
};

/**
 * @brief Fill @p err (may be NULL) and return @p status, so that "return pay_err_set(...)" reads
 * well.
 * @param op static text, borrowed for ever.
 */
enum pay_status pay_err_set(struct pay_err *err, enum pay_status status, int code, const char *op,
                            const char *fmt, ...) PAY_PRINTF(5, 6);

/** @return static name such as "RETRY"; never NULL. */
const char *pay_status_name(enum pay_status status);

#endif /* PAY_BASE_ERR_H */
