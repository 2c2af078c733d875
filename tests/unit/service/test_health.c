/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: a loop that stopped turning is not alive; one that ended in order is not missed; every
 * check and the drain decide readiness, with the reason in the body. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/service/health.h"

static int setup(void **state)
{
    *state = pay_health_new();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    *state = pay_health_free(*state);
    return 0;
}

static bool live(struct pay_health *health, const char *contains)
{
    struct pay_buf out = pay_buf_make(4096);
    const bool is_alive = pay_health_live(health, &out);

    assert_non_null(strstr((const char *)out.data, contains));
    pay_buf_free(&out);
    return is_alive;
}

static bool ready(struct pay_health *health, bool draining, const char *text)
{
    struct pay_buf out = pay_buf_make(4096);
    const bool is_ready = pay_health_ready(health, draining, &out);

    assert_string_equal((const char *)out.data, text);
    pay_buf_free(&out);
    return is_ready;
}

static void a_loop_that_stopped_is_not_alive(void **state)
{
    struct pay_health_loop *fast = pay_health_loop_add(*state, "fast", 1);
    struct pay_health_loop *slow = pay_health_loop_add(*state, "slow", 60000);
    const int64_t until = pay_clock_mono_us() + 10000000;

    pay_health_beat(slow);
    bool is_alive = true;
    while (is_alive && pay_clock_mono_us() < until) { /* Its 1 ms passes by itself. */
        is_alive = live(*state, "\"name\":\"fast\"");
    }
    assert_false(is_alive);
    (void)live(*state, "\"limit_ms\":1,\"alive\":false}");
    assert_false(live(*state, "\"limit_ms\":60000,\"alive\":true}"));
    pay_health_loop_end(fast);
    assert_true(live(*state, "],\"alive\":true}"));
    pay_health_beat(NULL);
    pay_health_loop_end(NULL);
}

static bool check(void *ctx, char why[PAY_HEALTH_WHY_MAX])
{
    const bool *is_met = ctx;

    (void)snprintf(why, PAY_HEALTH_WHY_MAX, "no \"broker\"");
    return *is_met;
}

static void every_check_decides(void **state)
{
    bool first = true;
    bool second = false;

    assert_false(ready(*state, false, "{\"checks\":[],\"draining\":false,\"ready\":false}\n"));
    pay_health_check_add(*state, "kafka", check, &first);
    pay_health_check_add(*state, "postgres", check, &second);
    assert_false(ready(*state, false,
                       "{\"checks\":[{\"name\":\"kafka\",\"ready\":true},{\"name\":\"postgres\","
                       "\"ready\":false,\"why\":\"no \\\"broker\\\"\"}],\"draining\":false,"
                       "\"ready\":false}\n"));
    second = true;
    assert_true(ready(*state, false,
                      "{\"checks\":[{\"name\":\"kafka\",\"ready\":true},{\"name\":\"postgres\","
                      "\"ready\":true}],\"draining\":false,\"ready\":true}\n"));
    assert_false(ready(*state, true,
                       "{\"checks\":[{\"name\":\"kafka\",\"ready\":true},{\"name\":\"postgres\","
                       "\"ready\":true}],\"draining\":true,\"ready\":false}\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_loop_that_stopped_is_not_alive, setup, teardown),
        cmocka_unit_test_setup_teardown(every_check_decides, setup, teardown),
    };
    return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
