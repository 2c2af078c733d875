/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: one event is one line of JSON in one write, whatever is in it; levels filter. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define LINES 100 /* All of them fit into a pipe of 64 KiB. */

/* stderr goes into a pipe during a test and comes back in the teardown, also after a failure. */
static struct {
    int stderr_before;
    int read_end;
    char said[1 << 20];
} captured = {-1, -1, ""};

static int capture(void **state)
{
    int ends[2];
    (void)state;
    if (pipe(ends) != 0) {
        return -1;
    }
    captured.stderr_before = dup(STDERR_FILENO);
    captured.read_end = ends[0];
    if (dup2(ends[1], STDERR_FILENO) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        return -1;
    }
    pay_log_init("ingest", PAY_LOG_INFO);
    return close(ends[1]);
}

static int restore(void **state)
{
    (void)state;
    (void)dup2(captured.stderr_before, STDERR_FILENO);
    (void)close(captured.stderr_before);
    return close(captured.read_end);
}

static const char *said(void)
{
    const ssize_t got = read(captured.read_end, captured.said, sizeof captured.said - 1);
    captured.said[got > 0 ? got : 0] = 0;
    return captured.said;
}

/* The line behind its ts, whose form is checked here. */
static const char *after_ts(const char *line)
{
    static const char form[] = "{\"ts\":\"dddd-dd-ddTdd:dd:dd.ddddddZ\"";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        if (form[i] == 'd') {
            assert_in_range(line[i], '0', '9');
        } else {
            assert_int_equal(line[i], form[i]);
        }
    }
    return line + sizeof form - 1;
}

static void a_line_has_its_fixed_keys_first(void **state)
{
    (void)state;
    pay_log(PAY_LOG_WARN, "decided", PAY_F_STR("payment_id", "p1"), PAY_F_INT("offset", INT64_MIN),
            PAY_F_BOOL("again", true), PAY_F_BOOL("late", false));
    assert_string_equal(after_ts(said()),
                        ",\"level\":\"warn\",\"svc\":\"ingest\",\"event\":\"decided\","
                        "\"payment_id\":\"p1\",\"offset\":-9223372036854775808,\"again\":true,"
                        "\"late\":false}\n");
}

static void an_absent_text_is_left_out(void **state)
{
    (void)state;
    pay_log(PAY_LOG_INFO, "x", PAY_F_STR("a", NULL), PAY_F_STR("b", ""));
    assert_string_equal(after_ts(said()),
                        ",\"level\":\"info\",\"svc\":\"ingest\",\"event\":\"x\",\"b\":\"\"}\n");
}

static void an_error_has_its_fields(void **state)
{
    (void)state;
    struct pay_err err = {0};
    assert_int_equal(pay_err_set(&err, PAY_RETRY, 7, "commit", "lost"), PAY_RETRY);
    pay_log(PAY_LOG_ERROR, "failed", PAY_F_ERR(&err));
    assert_string_equal(after_ts(said()),
                        ",\"level\":\"error\",\"svc\":\"ingest\",\"event\":\"failed\","
                        "\"err_class\":\"RETRY\",\"err_code\":7,\"err_op\":\"commit\","
                        "\"err\":\"lost\"}\n");
}

static void no_text_can_break_the_line(void **state)
{
    (void)state;
    pay_log(PAY_LOG_INFO, "x", PAY_F_STR("a", "1\n{\"level\":\"forged\"}\x01\xff"));
    const char *line = said();
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1); /* One line, ended. */
    assert_non_null(strstr(line, "\"a\":\"1\\n{\\\"level\\\":\\\"forged\\\"}\\u0001\\ufffd\"}\n"));
}

static void a_field_too_long_is_dropped_and_said_so(void **state)
{
    (void)state;
    static char big[8000];
    memset(big, 'x', sizeof big - 1);
    pay_log(PAY_LOG_INFO, "x", PAY_F_STR("big", big), PAY_F_INT("after", 1));
    const char *line = said();
    assert_null(strstr(line, "xxxx"));
    assert_non_null(strstr(line, ",\"event\":\"x\",\"after\":1,\"cut\":true}\n"));

    /* At every length around the maximum a line is whole JSON and at most 4096 bytes. */
    size_t cut_lines = 0;
    for (size_t len = 3900; len < 4100; len++) {
        big[len] = 0;
        pay_log(PAY_LOG_INFO, "x", PAY_F_STR("big", big));
        big[len] = 'x';
        line = said();
        const size_t got = strlen(line);
        assert_true(got <= 4096);
        assert_string_equal(line + got - 2, "}\n");
        const bool is_cut = strstr(line, "\"cut\":true}\n") != NULL;
        assert_int_equal(is_cut, strstr(line, "xxxx") == NULL);
        cut_lines += is_cut ? 1 : 0;
    }
    assert_in_range(cut_lines, 1, 199);
}

static void levels_filter(void **state)
{
    (void)state;
    for (int least = 0; least < PAY_LOG_LEVEL_COUNT; least++) {
        pay_log_init("ingest", (enum pay_log_level)least);
        for (int level = 0; level < PAY_LOG_LEVEL_COUNT; level++) {
            pay_log((enum pay_log_level)level, "x", PAY_F_INT("n", level));
            assert_int_equal(said()[0] == '{', level >= least);
        }
    }
}

static void errno_is_kept(void **state)
{
    (void)state;
    errno = ERANGE;
    pay_log(PAY_LOG_INFO, "x", PAY_F_INT("n", 1));
    assert_int_equal(errno, ERANGE);
    (void)close(STDERR_FILENO); /* Also when nobody takes the line; the teardown opens it again. */
    errno = ERANGE;
    pay_log(PAY_LOG_INFO, "x", PAY_F_INT("n", 1));
    assert_int_equal(errno, ERANGE);
}

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text != 0; text++) {
        lines += *text == '\n' ? 1 : 0;
    }
    return lines;
}

static void what_is_held_comes_whole_in_order_and_at_the_latest_at_the_end(void **state)
{
    (void)state;
    pay_log_hold();
    pay_log(PAY_LOG_INFO, "first", PAY_F_INT("n", 1));
    assert_string_equal(said(), "");
    pay_log(PAY_LOG_WARN, "second", PAY_F_INT("n", 2));
    const char *both = said();
    assert_int_equal(count_lines(both), 2);
    assert_true(strstr(both, "first") < strstr(both, "second"));
    for (int i = 0; i < 100; i++) { /* More than one write takes: no line is cut. */
        pay_log(PAY_LOG_INFO, "many", PAY_F_INT("n", i), PAY_F_STR("text", "some text in it"));
    }
    const size_t early = count_lines(said());
    assert_true(early > 0 && early < 100 && captured.said[strlen(captured.said) - 1] == '\n');
    errno = 5;
    pay_log_let_go();
    assert_int_equal(errno, 5);
    assert_int_equal(early + count_lines(said()), 100);
    pay_log(PAY_LOG_INFO, "alone", PAY_F_INT("n", 3));
    assert_int_equal(count_lines(said()), 1);
}

static void every_level_has_a_name(void **state)
{
    (void)state;
    static const char *const names[] = {"debug", "info", "warn", "error"};
    enum pay_log_level level = PAY_LOG_LEVEL_COUNT;

    for (int i = 0; i < PAY_LOG_LEVEL_COUNT; i++) {
        assert_true(pay_log_level_parse(names[i], &level));
        assert_int_equal(level, i);
    }
    assert_false(pay_log_level_parse("INFO", &level));
    assert_false(pay_log_level_parse("", &level));
    assert_false(pay_log_level_parse(NULL, &level));
    assert_int_equal(level, PAY_LOG_ERROR);
}

static void *write_lines(void *argument)
{
    static const char filling[] = "0123456789012345678901234567890123456789";
    for (int i = 0; i < LINES; i++) {
        pay_log(PAY_LOG_INFO, "x", PAY_F_STR("who", argument), PAY_F_STR("filling", filling));
    }
    return NULL;
}

static void threads_do_not_mix_their_lines(void **state)
{
    (void)state;
    static char who[] = "thread";
    pthread_t threads[THREADS];
    size_t lines = 0;

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, who), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (const char *line = said(); *line != 0; lines++) {
        const char *end = strchr(line, '\n');
        assert_non_null(end);
        assert_memory_equal(after_ts(line), ",\"level\":\"info\"", 15);
        assert_memory_equal(end - 3, "9\"}", 3);
        line = end + 1;
    }
    assert_int_equal(lines, THREADS * LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_line_has_its_fixed_keys_first, capture, restore),
        cmocka_unit_test_setup_teardown(an_absent_text_is_left_out, capture, restore),
        cmocka_unit_test_setup_teardown(an_error_has_its_fields, capture, restore),
        cmocka_unit_test_setup_teardown(no_text_can_break_the_line, capture, restore),
        cmocka_unit_test_setup_teardown(a_field_too_long_is_dropped_and_said_so, capture, restore),
        cmocka_unit_test_setup_teardown(levels_filter, capture, restore),
        cmocka_unit_test_setup_teardown(errno_is_kept, capture, restore),
        cmocka_unit_test_setup_teardown(
            what_is_held_comes_whole_in_order_and_at_the_latest_at_the_end, capture, restore),
        cmocka_unit_test(every_level_has_a_name),
        cmocka_unit_test_setup_teardown(threads_do_not_mix_their_lines, capture, restore),
    };
    return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
