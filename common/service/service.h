/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file service.h
 * @brief What the four mains share: command line, configuration, log, admin port, signals, drain.
 *
 * A main() is one call of pay_service_main() with a static description. SIGTERM or SIGINT turns the
 * mode from RUNNING to DRAINING; the service's run() then finishes what is in hand and returns. A
 * drain longer than DRAIN_MS_MAX ends the process with PAY_EXIT_DRAIN and a log line; a second
 * signal ends it at once.
 *
 * Ownership: the service object lives inside pay_service_main(). Threads: every call below from
 * any.
 *
 *     int main(int argc, char **argv) { return pay_service_main(argc, argv, &desc); }
 *     static enum pay_status run(struct pay_service *svc, struct pay_err *err)
 *     {
 *         struct pay_health_loop *loop = pay_service_loop(svc, "turn");
 *         while (pay_service_mode(svc) == PAY_SERVICE_RUNNING) { ... pay_health_beat(loop); }
 *         return PAY_OK;
 *     }
 */
#ifndef PAY_SERVICE_SERVICE_H
#define PAY_SERVICE_SERVICE_H

#include "common/service/common_config.h"
#include "common/service/health.h"
#include "common/service/metrics.h"

enum pay_service_mode {
    PAY_SERVICE_RUNNING,
    PAY_SERVICE_DRAINING, /**< No new work; finish, commit, return from run(). */
    PAY_SERVICE_MODE_COUNT
};

enum pay_exit {
    PAY_EXIT_OK = 0,
    PAY_EXIT_FAILED = 1, /**< run() failed. */
    PAY_EXIT_USAGE = 2,  /**< Command line or configuration. */
    PAY_EXIT_DRAIN = 3,  /**< The drain took too long. */
    PAY_EXIT_SIGNAL = 4  /**< A second signal. */
};

struct pay_service;

/** Static description of one binary. */
struct pay_service_desc {
    const char *name; /**< "payfact-ingest": log key svc, --version. */
    const char *what; /**< One sentence for --help. */
    const char *const
        *roles; /**< NULL-terminated; NULL: no --role. With roles, --role is required. */
    const struct pay_cfg_table *config;
    void *settings;                       /**< The struct that the table's offsets mean. Static. */
    struct pay_common_config *common;     /**< Its common member. */
    const struct pay_metric_def *metrics; /**< The service's families, for docs and registration. */
    size_t metric_count;
    /** @brief What the table cannot say: files readable, accounts valid ... Also for
     * --check-config. Must not touch the network. NULL: nothing. @param role NULL without roles. */
    enum pay_status (*check)(const char *role, struct pay_err *err);
    /** @brief The service. Returns when the mode is DRAINING and all is done, or on failure. */
    enum pay_status (*run)(struct pay_service *svc, struct pay_err *err);
};

/** @brief The whole life of a process. @return its exit status, enum pay_exit. */
int pay_service_main(int argc, char **argv, const struct pay_service_desc *desc);

enum pay_service_mode pay_service_mode(const struct pay_service *svc);
/** @return the value of --role; NULL when the service has no roles. */
const char *pay_service_role(const struct pay_service *svc);
/** @return a file descriptor that is readable for ever once the mode is DRAINING (for poll). */
int pay_service_drain_fd(const struct pay_service *svc);
/** @brief Wait until DRAINING or @p timeout_ms. @return true when DRAINING. The only way to pause.
 */
bool pay_service_wait(struct pay_service *svc, unsigned timeout_ms);
/** @brief Begin to drain from inside (a worker failed for good). @p err NULL: in order; else logged
 * and the exit status is PAY_EXIT_FAILED. */
void pay_service_stop(struct pay_service *svc, const struct pay_err *err);
/**
 * @brief A library's threads live on (a consumer was abandoned): the process ends in order up to
 * its last log line, then by _exit. Exit handlers, OpenSSL's among them, would race those threads,
 * and a drain would end by a signal now and then.
 */
void pay_service_outlived(struct pay_service *svc);
/** @return milliseconds left of DRAIN_MS_MAX; all of it while RUNNING. For bounded flushes. */
int64_t pay_service_drain_left_ms(const struct pay_service *svc);

struct pay_metrics *pay_service_metrics(struct pay_service *svc);
struct pay_health *pay_service_health(struct pay_service *svc);
/** @brief A loop watched by /healthz with TURN_MS_MAX. */
struct pay_health_loop *pay_service_loop(struct pay_service *svc, const char *name);

#endif /* PAY_SERVICE_SERVICE_H */
