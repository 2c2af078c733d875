/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file health.h
 * @brief Liveness is the age of each loop's last turn; readiness is what the service's checks say.
 *
 * Ownership: beats and checks belong to the health object. Threads: beat from anywhere; register at
 * start-up. Neither state restarts a pod for an outage of a broker or a database.
 */
#ifndef PAY_SERVICE_HEALTH_H
#define PAY_SERVICE_HEALTH_H

#include "common/base/buf.h"

#define PAY_HEALTH_BEATS_MAX 64  /**< Loops of one process. */
#define PAY_HEALTH_CHECKS_MAX 16 /**< Readiness checks. */
#define PAY_HEALTH_WHY_MAX 128

struct pay_health;
struct pay_health_loop;

/** @return true when ready; else a reason in @p why (no secrets). Runs on the admin thread: no
 * blocking. */
typedef bool pay_health_check_fn(void *ctx, char why[PAY_HEALTH_WHY_MAX]);

/** @return NULL when memory is out. */
struct pay_health *pay_health_new(void);
struct pay_health *pay_health_free(struct pay_health *health);

/** @param name static. @param limit_ms a turn older than this is not alive. Counts as a first beat.
 */
struct pay_health_loop *pay_health_loop_add(struct pay_health *health, const char *name,
                                            unsigned limit_ms);
/** @brief The loop turned. Lock-free; copes with NULL. */
void pay_health_beat(struct pay_health_loop *loop);
/** @brief The loop ended in order: it is not watched any more. */
void pay_health_loop_end(struct pay_health_loop *loop);
/** @param name static. @param fn called on each /readyz. Without any check nothing is ready yet. */
void pay_health_check_add(struct pay_health *health, const char *name, pay_health_check_fn *fn,
                          void *ctx);

/** @brief Write the JSON reason body. @return alive. */
bool pay_health_live(const struct pay_health *health, struct pay_buf *out);
/** @brief Write the JSON reason body. @param draining not ready whatever the checks say. @return
 * ready. */
bool pay_health_ready(const struct pay_health *health, bool draining, struct pay_buf *out);

#endif /* PAY_SERVICE_HEALTH_H */
