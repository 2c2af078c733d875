/* SPDX-License-Identifier: Apache-2.0 */
#include "common/service/service.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/service/admin.h"
#include "common/service/cli.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/base/banned.h"

#define OUTPUT_BYTES_MAX 262144
#define FILES_MAX 65536 /* Raised to at most this: one file descriptor a connection. */
#define WAKE SIGUSR1    /* To our own signal thread: look again. */

struct pay_service {
    const struct pay_service_desc *desc;
    const char *role;
    atomic_int mode;
    atomic_bool has_failed, is_done;
    atomic_bool is_outlived;          /* Threads of a library run to the very end. */
    _Atomic int64_t drain_started_us; /* Monotonic; 0: running. */
    int drain_fd;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* The mode. Monotonic clock. */
    pthread_t signal_thread;
    sigset_t signals;
    struct pay_metrics *metrics;
    struct pay_health *health;
    struct pay_admin *admin;
};

static const struct pay_metric_def process_metrics[] = {
    {.name = "payfact_info",
     .type = PAY_METRIC_GAUGE,
     .help = "Always 1; which binary this is.",
     .labels = {"service", "role", "version"}},
    {.name = "process_resident_memory_bytes",
     .type = PAY_METRIC_GAUGE,
     .help = "Resident memory of the process."},
    {.name = "payfact_draining",
     .type = PAY_METRIC_GAUGE,
     .help = "1 from the first signal to the end."},
};

enum { INFO, RESIDENT, DRAINING };

enum pay_service_mode pay_service_mode(const struct pay_service *svc)
{
    return (enum pay_service_mode)atomic_load(&svc->mode);
}

const char *pay_service_role(const struct pay_service *svc)
{
    return svc->role;
}

int pay_service_drain_fd(const struct pay_service *svc)
{
    return svc->drain_fd;
}

struct pay_metrics *pay_service_metrics(struct pay_service *svc)
{
    return svc->metrics;
}

struct pay_health *pay_service_health(struct pay_service *svc)
{
    return svc->health;
}

struct pay_health_loop *pay_service_loop(struct pay_service *svc, const char *name)
{
    return pay_health_loop_add(svc->health, name, (unsigned)svc->desc->common->turn_ms_max);
}

static void timespec_at(int64_t us, struct timespec *ret_at)
{
    *ret_at =
        (struct timespec){.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000) * 1000};
}

bool pay_service_wait(struct pay_service *svc, unsigned timeout_ms)
{
    struct timespec at;
    int rc = 0;

    timespec_at(pay_clock_mono_us() + (int64_t)timeout_ms * 1000, &at);
    pthread_mutex_lock(&svc->lock);
    while (pay_service_mode(svc) == PAY_SERVICE_RUNNING && rc == 0) {
        rc = pthread_cond_timedwait(&svc->changed, &svc->lock, &at);
    }
    pthread_mutex_unlock(&svc->lock);
    return pay_service_mode(svc) != PAY_SERVICE_RUNNING;
}

int64_t pay_service_drain_left_ms(const struct pay_service *svc)
{
    const int64_t started_us = atomic_load(&svc->drain_started_us);
    const int64_t all_ms = svc->desc->common->drain_ms_max;

    if (started_us == 0) {
        return all_ms;
    }
    const int64_t left_ms = all_ms - (pay_clock_mono_us() - started_us) / 1000;
    return left_ms > 0 ? left_ms : 0;
}

/* @return true for the call that began it. */
static bool begin_drain(struct pay_service *svc)
{
    const uint64_t one = 1;

    pthread_mutex_lock(&svc->lock);
    const bool is_first = pay_service_mode(svc) == PAY_SERVICE_RUNNING;
    if (is_first) {
        atomic_store(&svc->drain_started_us, pay_clock_mono_us());
        atomic_store(&svc->mode, PAY_SERVICE_DRAINING);
        const ssize_t written = write(svc->drain_fd, &one, sizeof one);
        PAY_ASSERT(written == (ssize_t)sizeof one);
        pthread_cond_broadcast(&svc->changed);
    }
    pthread_mutex_unlock(&svc->lock);
    return is_first;
}

void pay_service_stop(struct pay_service *svc, const struct pay_err *err)
{
    if (err != NULL) {
        atomic_store(&svc->has_failed, true);
        pay_log(PAY_LOG_ERROR, "service_failing", PAY_F_ERR(err));
    }
    if (begin_drain(svc)) {
        pay_log(PAY_LOG_INFO, "drain_started", PAY_F_STR("by", "service"),
                PAY_F_INT("drain_ms_max", svc->desc->common->drain_ms_max));
        PAY_ASSERT(pthread_kill(svc->signal_thread, WAKE) == 0); /* Its watch begins. */
    }
}

void pay_service_outlived(struct pay_service *svc)
{
    atomic_store(&svc->is_outlived, true);
}

/* Nothing is cleaned up: kill -9 at any instruction loses nothing. */
PAY_NORETURN static void end_now(enum pay_exit status)
{
    _exit((int)status);
}

/* @return the signal, 0 at the end of the drain's time. */
static int next_signal(struct pay_service *svc)
{
    for (;;) {
        struct timespec left = {0, 0};
        int number = 0;
        if (pay_service_mode(svc) == PAY_SERVICE_RUNNING) {
            number = sigwaitinfo(&svc->signals, NULL);
        } else {
            timespec_at(pay_service_drain_left_ms(svc) * 1000, &left);
            number = sigtimedwait(&svc->signals, NULL, &left);
        }
        if (number > 0) {
            return number;
        }
        if (errno == EAGAIN) {
            return 0;
        }
        PAY_ASSERT(errno == EINTR);
    }
}

static void *watch_signals(void *arg)
{
    struct pay_service *svc = arg;
    unsigned signal_count = 0;

    while (!atomic_load(&svc->is_done)) {
        const int number = next_signal(svc);
        if (number == WAKE) {
            continue;
        }
        if (number == 0 && pay_service_drain_left_ms(svc) == 0) {
            pay_log(PAY_LOG_ERROR, "drain_too_long",
                    PAY_F_INT("drain_ms_max", svc->desc->common->drain_ms_max));
            end_now(PAY_EXIT_DRAIN);
        }
        if (number != 0 && ++signal_count > 1) {
            pay_log(PAY_LOG_WARN, "second_signal", PAY_F_INT("signal", number));
            end_now(PAY_EXIT_SIGNAL);
        }
        if (number != 0 && begin_drain(svc)) {
            pay_log(PAY_LOG_INFO, "drain_started",
                    PAY_F_STR("by", number == SIGTERM ? "SIGTERM" : "SIGINT"),
                    PAY_F_INT("drain_ms_max", svc->desc->common->drain_ms_max));
        }
    }
    return NULL;
}

static bool is_draining(void *ctx)
{
    const struct pay_service *svc = ctx;

    return pay_service_mode(svc) != PAY_SERVICE_RUNNING;
}

static int64_t resident_bytes(void)
{
    long size = 0;
    long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL) {
        return 0;
    }
    char line[128] = "";
    const bool ok = fgets(line, sizeof line, file) != NULL;
    (void)fclose(file);
    /* Two small numbers of the kernel's. */
    if (!ok || sscanf(line, "%ld %ld", &size, &resident) != 2) { /* NOLINT(cert-err34-c) */
        return 0;
    }
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static void collect_process(void *ctx)
{
    struct pay_service *svc = ctx;

    pay_metric_set(
        pay_metrics_family(svc->metrics, &process_metrics[INFO]),
        (const char *const[]){svc->desc->name, svc->role == NULL ? "" : svc->role, PAY_VERSION}, 1);
    pay_metric_set(pay_metrics_family(svc->metrics, &process_metrics[RESIDENT]), NULL,
                   resident_bytes());
    pay_metric_set(pay_metrics_family(svc->metrics, &process_metrics[DRAINING]), NULL,
                   is_draining(svc) ? 1 : 0);
}

static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < FILES_MAX) {
        limit.rlim_cur = limit.rlim_max < FILES_MAX ? limit.rlim_max : FILES_MAX;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* Else the limit stays what it was. */
    }
}

static enum pay_status start(struct pay_service *svc, struct pay_err *err)
{
    const struct pay_common_config *common = svc->desc->common;

    svc->metrics = pay_metrics_new();
    svc->health = pay_health_new();
    if (svc->metrics == NULL || svc->health == NULL) {
        return pay_err_set(err, PAY_FATAL, errno, "start service", "out of memory");
    }
    pay_metrics_collector_add(svc->metrics, collect_process, svc);
    for (size_t i = 0; i < svc->desc->metric_count; i++) {
        (void)pay_metrics_family(svc->metrics, &svc->desc->metrics[i]);
    }
    const struct pay_admin_options admin = {.bind = common->admin_bind,
                                            .port = (uint16_t)common->admin_port,
                                            .metrics = svc->metrics,
                                            .health = svc->health,
                                            .draining = is_draining,
                                            .ctx = svc};
    return pay_admin_start(&admin, &svc->admin, err);
}

static void stop(struct pay_service *svc)
{
    svc->admin = pay_admin_stop(svc->admin);
    svc->metrics = pay_metrics_free(svc->metrics);
    svc->health = pay_health_free(svc->health);
}

/* Before the first thread, so that every thread has them blocked and one of ours takes them. */
static void take_signals(struct pay_service *svc)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    PAY_ASSERT(sigemptyset(&svc->signals) == 0 && sigaddset(&svc->signals, SIGTERM) == 0);
    PAY_ASSERT(sigaddset(&svc->signals, SIGINT) == 0 && sigaddset(&svc->signals, WAKE) == 0);
    PAY_ASSERT(pthread_sigmask(SIG_BLOCK, &svc->signals, NULL) == 0);
    PAY_ASSERT(sigaction(SIGPIPE, &ignore, NULL) == 0);
    PAY_ASSERT(pthread_create(&svc->signal_thread, NULL, watch_signals, svc) == 0);
}

static int run(const struct pay_service_desc *desc, const char *role)
{
    struct pay_err err = {.op = ""};
    pthread_condattr_t attr;
    /* Before and after the thread that writes to it. */
    struct pay_service svc = {
        .desc = desc, .role = role, .drain_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};

    PAY_ASSERT(svc.drain_fd >= 0 && pthread_mutex_init(&svc.lock, NULL) == 0);
    PAY_ASSERT(pthread_condattr_init(&attr) == 0);
    PAY_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    PAY_ASSERT(pthread_cond_init(&svc.changed, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
    raise_file_limit();
    take_signals(&svc);

    enum pay_status status = start(&svc, &err);
    if (status == PAY_OK) {
        pay_log(PAY_LOG_INFO, "service_started", PAY_F_STR("version", PAY_VERSION),
                PAY_F_STR("role", role), PAY_F_STR("instance", desc->common->instance_id),
                PAY_F_INT("admin_port", pay_admin_port(svc.admin)));
        status = desc->run(&svc, &err);
    }
    if (status != PAY_OK) {
        pay_log(PAY_LOG_ERROR, "service_failed", PAY_F_ERR(&err));
    }
    stop(&svc);
    const bool has_failed = status != PAY_OK || atomic_load(&svc.has_failed);
    pay_log(PAY_LOG_INFO, "service_stopped", PAY_F_BOOL("in_order", !has_failed),
            PAY_F_BOOL("threads_left", atomic_load(&svc.is_outlived)));
    atomic_store(&svc.is_done, true); /* The watch lasts to here: a hanging stop ends as well. */
    PAY_ASSERT(pthread_kill(svc.signal_thread, WAKE) == 0);
    PAY_ASSERT(pthread_join(svc.signal_thread, NULL) == 0);
    (void)close(svc.drain_fd);
    (void)pthread_cond_destroy(&svc.changed);
    (void)pthread_mutex_destroy(&svc.lock);
    const enum pay_exit status_code = has_failed ? PAY_EXIT_FAILED : PAY_EXIT_OK;
    if (atomic_load(&svc.is_outlived)) {
        end_now(status_code);
    }
    return status_code;
}

static void name_instance(struct pay_common_config *common)
{
    char host[256] = "";

    if (common->instance_id[0] != 0) {
        return;
    }
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == 0) {
        memcpy(host, "host", sizeof "host");
    }
    (void)snprintf(common->instance_id, sizeof common->instance_id, "%s-%ld", host, (long)getpid());
}

/* @return PAY_EXIT_OK, or PAY_EXIT_USAGE after a log line. */
static enum pay_exit load(const struct pay_service_desc *desc, const struct pay_cli *cli)
{
    struct pay_err err = {.op = ""};
    enum pay_log_level level = PAY_LOG_INFO;
    enum pay_status status = pay_cfg_load(desc->config, desc->settings, &err);

    if (status == PAY_OK && !pay_log_level_parse(desc->common->log_level, &level)) {
        status = pay_err_set(&err, PAY_FATAL, 0, "load configuration",
                             "LOG_LEVEL \"%.40s\" is none of debug, info, warn, error",
                             desc->common->log_level);
    }
    if (status == PAY_OK) {
        pay_log_init(desc->name, level);
        name_instance(desc->common);
    }
    if (status == PAY_OK && cli->action != PAY_CLI_PRINT_CONFIG && desc->check != NULL) {
        status = desc->check(cli->role, &err);
    }
    if (status != PAY_OK) {
        pay_log(PAY_LOG_ERROR, "config_refused", PAY_F_ERR(&err));
        return PAY_EXIT_USAGE;
    }
    return PAY_EXIT_OK;
}

/* Print and forget. @return the exit status. */
static enum pay_exit print(struct pay_buf *out)
{
    const bool ok =
        !out->failed && fwrite(out->data, 1, out->len, stdout) == out->len && fflush(stdout) == 0;

    pay_buf_free(out);
    return ok ? PAY_EXIT_OK : PAY_EXIT_FAILED;
}

static void print_metrics_docs(const struct pay_service_desc *desc, struct pay_buf *out)
{
    struct pay_metric_def all[PAY_METRICS_FAMILIES_MAX];
    const size_t own = sizeof process_metrics / sizeof process_metrics[0];

    PAY_ASSERT(desc->metric_count <= PAY_METRICS_FAMILIES_MAX - own);
    memcpy(all, process_metrics, sizeof process_metrics);
    if (desc->metric_count > 0) {
        memcpy(all + own, desc->metrics, desc->metric_count * sizeof all[0]);
    }
    pay_metrics_print_docs(all, own + desc->metric_count, out);
}

int pay_service_main(int argc, char **argv, const struct pay_service_desc *desc)
{
    struct pay_cli cli;
    struct pay_err err;
    struct pay_buf out = pay_buf_make(OUTPUT_BYTES_MAX);

    pay_log_init(desc->name, PAY_LOG_INFO);
    if (pay_cli_parse(argc, argv, desc, &cli, &err) != PAY_OK) {
        pay_log(PAY_LOG_ERROR, "usage", PAY_F_ERR(&err));
        return PAY_EXIT_USAGE;
    }
    switch (cli.action) {
    case PAY_CLI_VERSION:
        pay_buf_printf(&out, "%s %s\n", desc->name, PAY_VERSION);
        return (int)print(&out);
    case PAY_CLI_HELP:
        pay_cli_print_help(desc, &out);
        return (int)print(&out);
    case PAY_CLI_PRINT_CONFIG_DOCS:
        pay_cfg_print_docs(desc->config, &out);
        return (int)print(&out);
    case PAY_CLI_PRINT_METRICS_DOCS:
        print_metrics_docs(desc, &out);
        return (int)print(&out);
    case PAY_CLI_RUN:
    case PAY_CLI_CHECK_CONFIG:
    case PAY_CLI_PRINT_CONFIG:
    case PAY_CLI_ACTION_COUNT:
    default:
        break;
    }
    if (load(desc, &cli) != PAY_EXIT_OK) {
        return PAY_EXIT_USAGE;
    }
    if (cli.action == PAY_CLI_RUN) {
        return run(desc, cli.role);
    }
    if (cli.action == PAY_CLI_PRINT_CONFIG) {
        pay_cfg_print(desc->config, desc->settings, &out);
    } else {
        pay_buf_printf(&out, "%s: the configuration is valid\n", desc->name);
    }
    return (int)print(&out);
}
