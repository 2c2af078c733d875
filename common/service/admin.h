/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file admin.h
 * @brief The admin port: GET /metrics, /healthz and /readyz. Started by pay_service_main().
 *
 * Ownership: metrics and health are borrowed until stop. Threads: its own. Failure: start-up only.
 */
#ifndef PAY_SERVICE_ADMIN_H
#define PAY_SERVICE_ADMIN_H

#include "common/base/err.h"
#include "common/service/health.h"
#include "common/service/metrics.h"

#define PAY_ADMIN_BODY_BYTES_MAX 4194304 /**< A larger exposition is answered 500. */

struct pay_admin;

struct pay_admin_options {
    const char *bind;
    uint16_t port; /**< 0: a free one. */
    struct pay_metrics *metrics;
    struct pay_health *health;
    bool (*draining)(void *ctx); /**< NULL: never. */
    void *ctx;
};

PAY_MUST_CHECK enum pay_status pay_admin_start(const struct pay_admin_options *opts,
                                               struct pay_admin **ret_admin, struct pay_err *err);
uint16_t pay_admin_port(const struct pay_admin *admin);
struct pay_admin *pay_admin_stop(struct pay_admin *admin);

#endif /* PAY_SERVICE_ADMIN_H */
