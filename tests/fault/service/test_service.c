/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a process starts, answers on its admin port, drains on a signal, ends with the documented
 * status, and never hangs longer than DRAIN_MS_MAX.
 * Method: this program is also the service: started again with PROBE in the environment it calls
 * pay_service_main() and behaves as told. The test is its operator.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/service/service.h"

#define WAIT_MS 20000

/* --- the service ---------------------------------------------------------------------------- */

struct settings {
    struct pay_common_config common;
    char secret[PAY_CFG_TEXT_MAX];
};

static struct settings settings;

static const struct pay_cfg_row rows[] = {
    PAY_ROWS_SERVICE(struct settings, common),
    {"SECRET", PAY_CFG_TEXT, offsetof(struct settings, secret), NULL, 0, 0, "", PAY_CFG_SECRET,
     "Secret."},
};
static const struct pay_cfg_table table = {"probe", rows, sizeof rows / sizeof rows[0]};
static const struct pay_metric_def turns = {
    .name = "probe_turns_total", .type = PAY_METRIC_COUNTER, .help = "Turns."};

static const char *behaviour(void)
{
    const char *text = getenv("PROBE");

    return text == NULL ? "" : text;
}

static enum pay_status check(const char *role, struct pay_err *err)
{
    return strcmp(behaviour(), "invalid") == 0
               ? pay_err_set(err, PAY_FATAL, 0, "check", "nothing for role \"%s\"", role)
               : PAY_OK;
}

static bool is_warm(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    (void)ctx;
    (void)snprintf(why, PAY_HEALTH_WHY_MAX, "cold");
    return strcmp(behaviour(), "cold") != 0;
}

#define HANDLER_RAN "an exit handler ran\n"

static void exit_handler(void)
{
    if (write(STDERR_FILENO, HANDLER_RAN, sizeof HANDLER_RAN - 1) < 0) {
        abort(); /* The test looks for what it could not say. */
    }
}

static enum pay_status run(struct pay_service *svc, struct pay_err *err)
{
    struct pay_health_loop *loop = pay_service_loop(svc, "turn");
    struct pay_metric *metric = pay_metrics_family(pay_service_metrics(svc), &turns);

    pay_health_check_add(pay_service_health(svc), "warm", is_warm, NULL);
    if (strcmp(behaviour(), "fail") == 0) {
        return pay_err_set(err, PAY_RETRY, 5, "turn", "broken");
    }
    if (strcmp(behaviour(), "stop") == 0) {
        pay_service_stop(svc, NULL);
    } else if (strcmp(behaviour(), "worker") == 0) {
        const struct pay_err failed = {.status = PAY_FATAL, .op = "work", .text = "fenced"};
        pay_service_stop(svc, &failed);
    }
    assert_int_equal(atexit(exit_handler), 0);
    if (strcmp(behaviour(), "outlived") == 0) {
        pay_service_outlived(svc);
    }
    while (!pay_service_wait(svc, 5)) {
        pay_metric_add(metric, NULL, 1);
        pay_health_beat(loop);
    }
    struct pollfd drain = {.fd = pay_service_drain_fd(svc), .events = POLLIN};
    if (poll(&drain, 1, 0) != 1 || pay_service_mode(svc) != PAY_SERVICE_DRAINING) {
        return pay_err_set(err, PAY_FATAL, 0, "drain", "the descriptor is not readable");
    }
    while (strcmp(behaviour(), "hang") == 0 || strcmp(behaviour(), "linger") == 0) {
        (void)poll(NULL, 0, 1000); /* For ever: the watch ends it. */
    }
    return pay_service_drain_left_ms(svc) > 0 ? PAY_OK
                                              : pay_err_set(err, PAY_FATAL, 0, "drain", "no time");
}

static const char *const roles[] = {"webhook", "psp", NULL};
static const struct pay_service_desc desc = {.name = "probe",
                                             .what = "a service to be tested",
                                             .roles = roles,
                                             .config = &table,
                                             .settings = &settings,
                                             .common = &settings.common,
                                             .metrics = &turns,
                                             .metric_count = 1,
                                             .check = check,
                                             .run = run};

/* --- its operator --------------------------------------------------------------------------- */

struct child {
    pid_t pid;
    int out;
    char text[32768];
    size_t len;
};

static void start(struct child *child, const char *how, const char *argument,
                  const char *const *environment)
{
    int pipes[2];

    *child = (struct child){.len = 0};
    assert_int_equal(pipe(pipes), 0);
    child->pid = fork();
    if (child->pid == 0) {
        (void)dup2(pipes[1], STDOUT_FILENO);
        (void)dup2(pipes[1], STDERR_FILENO);
        (void)close(pipes[0]);
        (void)close(pipes[1]);
        (void)unsetenv("PAYFACT_TEST_PG"); /* A service refuses a name that it does not know. */
        (void)unsetenv("PAYFACT_TEST_REDIS");
        (void)unsetenv("PAYFACT_TEST_KAFKA");
        (void)setenv("PROBE", how, 1);
        (void)setenv("PAYFACT_ADMIN_PORT", "0", 1);
        (void)setenv("PAYFACT_DRAIN_MS_MAX", "9000", 1);
        for (size_t i = 0; environment != NULL && environment[i] != NULL; i += 2) {
            (void)setenv(environment[i], environment[i + 1], 1);
        }
        (void)execl("/proc/self/exe", "probe", "--role", "psp", argument, (char *)NULL);
        _exit(127);
    }
    assert_true(child->pid > 0);
    (void)close(pipes[1]);
    child->out = pipes[0];
}

/* Read what it prints until @p text is there; NULL: until the end. */
static void read_until(struct child *child, const char *text)
{
    const int64_t until = pay_clock_mono_us() + (int64_t)WAIT_MS * 1000;

    while (text == NULL || strstr(child->text, text) == NULL) {
        struct pollfd at = {.fd = child->out, .events = POLLIN};
        if (pay_clock_mono_us() > until) {
            (void)kill(child->pid, SIGKILL);
            fail_msg("not within %d ms: \"%s\" in \"%s\"", WAIT_MS, text == NULL ? "" : text,
                     child->text);
        }
        if (poll(&at, 1, 100) <= 0) {
            continue;
        }
        const ssize_t got =
            read(child->out, child->text + child->len, sizeof child->text - 1 - child->len);
        if (got <= 0) {
            assert_true(text == NULL);
            return;
        }
        child->len += (size_t)got;
    }
}

static int end(struct child *child)
{
    int status = 0;

    read_until(child, NULL);
    (void)close(child->out);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static bool printed(const struct child *child, const char *text)
{
    if (strstr(child->text, text) == NULL) {
        print_error("no \"%s\" in:\n%s\n", text, child->text);
        return false;
    }
    return true;
}

/* @return the whole answer of the admin port, in static memory. */
static const char *get(struct child *child, const char *method, const char *path)
{
    static char answer[65536];
    char request[128];
    size_t len = 0;

    read_until(child, "\"admin_port\":");
    read_until(child, "service_started");
    const char *port = strstr(child->text, "\"admin_port\":") + 13;
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)strtoul(port, NULL, 10)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    (void)snprintf(request, sizeof request, "%s %s HTTP/1.0\r\n\r\n", method, path);
    assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
    for (ssize_t got = 1; got > 0 && len < sizeof answer - 1;) {
        got = recv(fd, answer + len, sizeof answer - 1 - len, 0);
        len += got > 0 ? (size_t)got : 0;
    }
    answer[len] = 0;
    (void)close(fd);
    return answer;
}

/* The service registers its checks a moment after its admin port answers; never ready before. */
static const char *get_until(struct child *child, const char *path, const char *text)
{
    const int64_t until = pay_clock_mono_us() + (int64_t)WAIT_MS * 1000;
    const char *answer = get(child, "GET", path);

    while (strstr(answer, text) == NULL) {
        assert_non_null(strstr(answer, " 503 "));
        assert_true(pay_clock_mono_us() < until);
        answer = get(child, "GET", path);
    }
    return answer;
}

static void it_serves_and_drains(void **state)
{
    (void)state;
    struct child child;

    start(&child, "", NULL, NULL);
    assert_non_null(strstr(get(&child, "GET", "/healthz"), " 200 OK"));
    (void)get_until(&child, "/readyz", "\"ready\":true}");
    const char *metrics = get(&child, "GET", "/metrics");
    assert_non_null(strstr(metrics, "\nprobe_turns_total "));
    assert_non_null(strstr(metrics, "payfact_info{service=\"probe\",role=\"psp\","));
    assert_non_null(strstr(metrics, "process_resident_memory_bytes "));
    assert_non_null(strstr(get(&child, "GET", "/other"), " 404 "));
    assert_non_null(strstr(get(&child, "POST", "/metrics"), " 405 "));
    assert_int_equal(kill(child.pid, SIGTERM), 0);
    assert_int_equal(end(&child), PAY_EXIT_OK);
    assert_true(printed(&child, "\"drain_started\",\"by\":\"SIGTERM\""));
    assert_true(printed(&child, "\"in_order\":true"));
}

/* What a library's threads still use is not taken from under them. */
static void outlived_it_ends_without_exit_handlers(void **state)
{
    (void)state;
    static const char *const hows[] = {"", "outlived"};

    for (size_t i = 0; i < 2; i++) {
        struct child child;
        start(&child, hows[i], NULL, NULL);
        read_until(&child, "service_started");
        assert_int_equal(kill(child.pid, SIGTERM), 0);
        assert_int_equal(end(&child), PAY_EXIT_OK);
        assert_true(printed(&child, i == 0 ? "\"threads_left\":false" : "\"threads_left\":true"));
        assert_int_equal(strstr(child.text, HANDLER_RAN) != NULL, i == 0);
    }
}

static void interrupt_drains_as_well(void **state)
{
    (void)state;
    struct child child;

    start(&child, "", NULL, NULL);
    read_until(&child, "service_started");
    assert_int_equal(kill(child.pid, SIGINT), 0);
    assert_int_equal(end(&child), PAY_EXIT_OK);
}

static void what_is_not_ready_says_why(void **state)
{
    (void)state;
    struct child child;

    start(&child, "cold", NULL, NULL);
    const char *answer = get_until(&child, "/readyz", "\"name\":\"warm\"");
    assert_non_null(strstr(answer, " 503 "));
    assert_non_null(strstr(answer, "\"why\":\"cold\""));
    assert_non_null(strstr(get(&child, "GET", "/healthz"), " 200 OK"));
    assert_int_equal(kill(child.pid, SIGTERM), 0);
    assert_int_equal(end(&child), PAY_EXIT_OK);
}

static void a_hanging_drain_is_ended(void **state)
{
    (void)state;
    struct child child;

    static const char *const environment[] = {"PAYFACT_DRAIN_MS_MAX", "1500", NULL};

    start(&child, "hang", NULL, environment);
    read_until(&child, "service_started");
    assert_int_equal(kill(child.pid, SIGTERM), 0);
    const char *answer = NULL;
    read_until(&child, "drain_started");
    answer = get(&child, "GET", "/readyz"); /* The admin port answers while it drains. */
    assert_non_null(strstr(answer, "\"draining\":true"));
    assert_int_equal(end(&child), PAY_EXIT_DRAIN);
    assert_true(printed(&child, "drain_too_long"));
}

static void a_second_signal_ends_at_once(void **state)
{
    (void)state;
    struct child child;
    static const char *const environment[] = {"PAYFACT_DRAIN_MS_MAX", "600000", NULL};

    start(&child, "linger", NULL, environment);
    read_until(&child, "service_started");
    assert_int_equal(kill(child.pid, SIGTERM), 0);
    read_until(&child, "drain_started");
    assert_int_equal(kill(child.pid, SIGTERM), 0);
    assert_int_equal(end(&child), PAY_EXIT_SIGNAL);
}

static void failures_end_with_their_status(void **state)
{
    (void)state;
    static const struct {
        const char *how;
        int status;
        const char *line;
    } cases[] = {
        {"fail", PAY_EXIT_FAILED, "\"service_failed\",\"err_class\":\"RETRY\""},
        {"worker", PAY_EXIT_FAILED, "\"service_failing\",\"err_class\":\"FATAL\""},
        {"stop", PAY_EXIT_OK, "\"by\":\"service\""},
        {"invalid", PAY_EXIT_USAGE, "nothing for role"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child;
        start(&child, cases[i].how, NULL, NULL);
        assert_int_equal(end(&child), cases[i].status);
        assert_true(printed(&child, cases[i].line));
    }
}

static void it_prints_and_checks(void **state)
{
    (void)state;
    static const char *const typo[] = {"PAYFACT_ADMIN_PROT", "1", NULL};
    static const char *const level[] = {"PAYFACT_LOG_LEVEL", "loud", NULL};
    static const struct {
        const char *argument;
        const char *how;
        const char *const *environment;
        int status;
        const char *text;
    } cases[] = {
        {"--version", "", NULL, PAY_EXIT_OK, "probe " PAY_VERSION "\n"},
        {"--help", "", NULL, PAY_EXIT_OK, "--role webhook"},
        {"--check-config", "", NULL, PAY_EXIT_OK, "the configuration is valid"},
        {"--check-config", "invalid", NULL, PAY_EXIT_USAGE, "nothing for role \\\"psp\\\""},
        {"--check-config", "", typo, PAY_EXIT_USAGE, "PAYFACT_ADMIN_PROT"},
        {"--check-config", "", level, PAY_EXIT_USAGE, "LOG_LEVEL"},
        {"--print-config", "", NULL, PAY_EXIT_OK, "DRAIN_MS_MAX=9000\n"},
        {"--print-config-docs", "", NULL, PAY_EXIT_OK, "| `PAYFACT_SECRET_FILE` |"},
        {"--print-metrics-docs", "", NULL, PAY_EXIT_OK, "| `probe_turns_total` | counter |"},
        {"--nonsense", "", NULL, PAY_EXIT_USAGE, "--nonsense"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct child child;
        start(&child, cases[i].how, cases[i].argument, cases[i].environment);
        assert_int_equal(end(&child), cases[i].status);
        assert_true(printed(&child, cases[i].text));
    }
}

static void a_used_admin_port_is_a_failure(void **state)
{
    (void)state;
    struct child first;
    struct child second;
    char port[16];

    start(&first, "", NULL, NULL);
    (void)get(&first, "GET", "/healthz");
    (void)snprintf(port, sizeof port, "%lu",
                   strtoul(strstr(first.text, "\"admin_port\":") + 13, NULL, 10));
    const char *const environment[] = {"PAYFACT_ADMIN_PORT", port, NULL};
    start(&second, "", NULL, environment);
    assert_int_equal(end(&second), PAY_EXIT_FAILED);
    assert_true(printed(&second, "cannot listen on"));
    assert_int_equal(kill(first.pid, SIGTERM), 0);
    assert_int_equal(end(&first), PAY_EXIT_OK);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_serves_and_drains),
        cmocka_unit_test(outlived_it_ends_without_exit_handlers),
        cmocka_unit_test(interrupt_drains_as_well),
        cmocka_unit_test(what_is_not_ready_says_why),
        cmocka_unit_test(a_hanging_drain_is_ended),
        cmocka_unit_test(a_second_signal_ends_at_once),
        cmocka_unit_test(failures_end_with_their_status),
        cmocka_unit_test(it_prints_and_checks),
        cmocka_unit_test(a_used_admin_port_is_a_failure),
    };
    if (getenv("PROBE") != NULL) {
        return pay_service_main(argc, argv, &desc);
    }
    return cmocka_run_group_tests_name("service", tests, NULL, NULL);
}
