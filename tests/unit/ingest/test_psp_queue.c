/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goal: a sick PSP holds only its own jobs; nothing is lost; an offset is committed only when every
 * record before it is finished.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "services/ingest/psp_queue.h"

#define NEVER_US INT64_C(4000000000000000)

static const struct pay_account acme = {
    .psp = {.id = "acme"}, .calls_per_s = 100000, .in_flight = 2, .queued = 3};
static const struct pay_account other = {
    .psp = {.id = "other"}, .calls_per_s = 100000, .in_flight = 2, .queued = 3};

static struct pay_psp_queue *make(void)
{
    const struct pay_psp_queue_options options = {
        .tasks_max = 8, .breaker_failures = 2, .breaker_open_us = NEVER_US, .retries_per_min = 1};
    return pay_psp_queue_new(&options);
}

static int setup(void **state)
{
    *state = make();
    return *state == NULL ? -1 : 0;
}

static int teardown(void **state)
{
    *state = pay_psp_queue_free(*state);
    return 0;
}

static enum pay_status push(struct pay_psp_queue *queue, const struct pay_account *account,
                            enum pay_job_kind kind, const char *id, int64_t offset)
{
    struct pay_err err = {.status = PAY_OK};
    const struct pay_psp_job job = {.job_id = pay_str_of(id),
                                    .kind = kind,
                                    .method = PAY_STR("card"),
                                    .not_after_us = NEVER_US};
    const struct pay_kafka_header headers[] = {{"traceparent", {(const uint8_t *)"t", 1}},
                                               {"null", {NULL, 0}}};
    const struct pay_psp_record record = {.place = {0, offset},
                                          .key = {(const uint8_t *)"key", 3},
                                          .value = {(const uint8_t *)id, strlen(id)},
                                          .headers = headers,
                                          .header_count = 2};
    return pay_psp_queue_push(queue, account, &job, &record, &err);
}

static int64_t committed(struct pay_psp_queue *queue)
{
    struct pay_psp_offset offset = {0, -1};
    return pay_psp_queue_offsets(queue, &offset, 1) == 1 ? offset.next : -1;
}

static void a_task_carries_its_bytes(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 5), PAY_OK);
    struct pay_psp_task *task = pay_psp_queue_take(queue);
    assert_string_equal(task->job_id, "A");
    assert_int_equal(task->value.len, 1);
    assert_memory_equal(task->value.ptr, "A", 1);
    assert_memory_equal(task->key.ptr, "key", 3);
    assert_int_equal(task->header_count, 2);
    assert_string_equal(task->headers[0].name, "traceparent");
    assert_memory_equal(task->headers[0].value.ptr, "t", 1);
    assert_string_equal(task->headers[1].name, "null");
    assert_null(task->headers[1].value.ptr);
    assert_true(task->is_money);
    assert_false(task->shed);
    pay_psp_queue_done(queue, task, false);
    assert_int_equal(committed(queue), 6);
}

static void offsets_wait_for_the_oldest(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "B", 1), PAY_OK);
    struct pay_psp_task *a = pay_psp_queue_take(queue);
    struct pay_psp_task *b = pay_psp_queue_take(queue);
    pay_psp_queue_done(queue, b, false);
    assert_int_equal(committed(queue), -1);
    pay_psp_queue_done(queue, a, false);
    assert_int_equal(committed(queue), 2);
    assert_int_equal(committed(queue), -1); /* Said once. */
}

static void an_unfinished_task_keeps_its_offset(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    pay_psp_queue_done(queue, pay_psp_queue_take(queue), true);
    assert_int_equal(committed(queue), -1);
}

static void a_dead_letter_counts_as_done(void **state)
{
    struct pay_psp_queue *queue = *state;
    struct pay_err err = {.status = PAY_OK};
    assert_int_equal(pay_psp_queue_skip(queue, (struct pay_psp_place){0, 7}, &err), PAY_OK);
    assert_int_equal(committed(queue), 8);
}

static void a_full_lane_sheds_and_the_others_go_on(void **state)
{
    struct pay_psp_queue *queue = *state;
    const char *const ids[] = {"A", "B", "C", "D"};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, ids[i], i), PAY_OK);
    }
    assert_int_equal(push(queue, &other, PAY_JOB_SUBMIT, "X", 4), PAY_OK);
    bool seen_other = false;
    bool seen_shed = false;
    struct pay_psp_task *tasks[4];
    for (int i = 0; i < 4; i++) { /* Two calls of acme, the shed one, the other account's. */
        tasks[i] = pay_psp_queue_take(queue);
        seen_other = seen_other || strcmp(tasks[i]->job_id, "X") == 0;
        seen_shed = seen_shed || (tasks[i]->shed && strcmp(tasks[i]->job_id, "D") == 0);
    }
    assert_true(seen_other);
    assert_true(seen_shed);
    for (int i = 0; i < 4; i++) {
        pay_psp_queue_done(queue, tasks[i], false);
    }
}

static void an_open_breaker_fails_money_fast_and_holds_queries(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    struct pay_psp_task *a = pay_psp_queue_take(queue);
    pay_psp_queue_note(queue, a, false);
    pay_psp_queue_note(queue, a, false);
    assert_false(pay_psp_queue_may_retry(queue, a));
    pay_psp_queue_done(queue, a, false);
    assert_int_equal(push(queue, &acme, PAY_JOB_QUERY, "Q", 1), PAY_OK);
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "B", 2), PAY_OK);
    struct pay_psp_task *b = pay_psp_queue_take(queue);
    assert_string_equal(b->job_id, "B");
    assert_true(b->shed);
    pay_psp_queue_done(queue, b, false);
    struct pay_psp_lane_state lane;
    assert_int_equal(pay_psp_queue_lanes(queue, &lane, 1), 1);
    assert_int_equal(lane.breaker, PAY_BREAKER_OPEN);
    assert_int_equal(lane.queued, 1); /* The query waits. */
}

static void a_second_copy_of_a_running_job_is_dropped(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    struct pay_psp_task *a = pay_psp_queue_take(queue);
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 1), PAY_OK);
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "B", 2), PAY_OK);
    struct pay_psp_task *b = pay_psp_queue_take(queue);
    assert_string_equal(b->job_id, "B");
    pay_psp_queue_done(queue, b, false);
    assert_int_equal(committed(queue), -1); /* The first copy still runs. */
    pay_psp_queue_done(queue, a, false);
    assert_int_equal(committed(queue), 3);
}

static void a_copy_from_the_same_place_is_not_done_before_the_first(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 5), PAY_OK);
    struct pay_psp_task *a = pay_psp_queue_take(queue);
    pay_psp_queue_forget(queue, 0); /* The partition went and came back: it is read again. */
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 5), PAY_OK);
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "B", 6), PAY_OK);
    pay_psp_queue_done(queue, pay_psp_queue_take(queue), false);
    assert_int_equal(committed(queue), -1);
    pay_psp_queue_done(queue, a, true); /* It could not be finished: nor is its copy. */
    assert_int_equal(committed(queue), -1);
}

static void a_lane_leaves_workers_to_the_others(void **state)
{
    (void)state;
    static const struct pay_account sick = {
        .psp = {.id = "sick"}, .calls_per_s = 100000, .in_flight = 100, .queued = 100};
    static const struct pay_account well = {
        .psp = {.id = "well"}, .calls_per_s = 100000, .in_flight = 100, .queued = 100};
    const struct pay_psp_queue_options options = {.tasks_max = 100,
                                                  .workers = 8,
                                                  .breaker_failures = 100,
                                                  .breaker_open_us = NEVER_US,
                                                  .retries_per_min = 1};
    struct pay_psp_queue *queue = pay_psp_queue_new(&options);
    struct pay_psp_task *tasks[8];
    char id[3] = "S0";
    assert_int_equal(push(queue, &well, PAY_JOB_SUBMIT, "W0", 0), PAY_OK);
    pay_psp_queue_done(queue, pay_psp_queue_take(queue), false);
    for (int i = 0; i < 8; i++, id[1]++) {
        assert_int_equal(push(queue, &sick, PAY_JOB_SUBMIT, id, i + 1), PAY_OK);
    }
    for (int i = 0; i < 6; i++) {
        tasks[i] = pay_psp_queue_take(queue);
        assert_int_equal(tasks[i]->job_id[0], 'S');
    }
    /* Two of eight are left for another. */
    assert_int_equal(push(queue, &well, PAY_JOB_SUBMIT, "W1", 9), PAY_OK);
    assert_int_equal(push(queue, &well, PAY_JOB_SUBMIT, "W2", 10), PAY_OK);
    for (int i = 6; i < 8; i++) {
        tasks[i] = pay_psp_queue_take(queue);
        assert_int_equal(tasks[i]->job_id[0], 'W');
    }
    for (int i = 0; i < 8; i++) {
        pay_psp_queue_done(queue, tasks[i], false);
    }
    assert_null(pay_psp_queue_free(queue));
}

static void new_limits_count_at_once(void **state)
{
    struct pay_psp_queue *queue = *state;
    const struct pay_account narrow = {
        .psp = {.id = "acme"}, .calls_per_s = 100000, .in_flight = 2, .queued = 0};
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    assert_int_equal(push(queue, &narrow, PAY_JOB_SUBMIT, "B", 1), PAY_OK);
    struct pay_psp_task *b = pay_psp_queue_take(queue);
    assert_string_equal(b->job_id, "B");
    assert_true(b->shed);
    pay_psp_queue_done(queue, b, false);
}

static void retries_have_a_budget(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    struct pay_psp_task *a = pay_psp_queue_take(queue);
    assert_true(pay_psp_queue_may_retry(queue, a));
    assert_false(pay_psp_queue_may_retry(queue, a));
    pay_psp_queue_done(queue, a, false);
}

static bool is_shed(struct pay_psp_queue *queue, const char *id, int64_t not_after_us)
{
    struct pay_err err = {.status = PAY_OK};
    const struct pay_psp_job job = {.job_id = pay_str_of(id),
                                    .kind = PAY_JOB_QUERY,
                                    .method = PAY_STR("card"),
                                    .not_after_us = not_after_us};
    const struct pay_psp_record record = {.place = {0, 0}};
    assert_int_equal(pay_psp_queue_push(queue, &acme, &job, &record, &err), PAY_OK);
    struct pay_psp_task *task = pay_psp_queue_take(queue);
    const bool shed = task->shed;
    pay_psp_queue_done(queue, task, false);
    return shed;
}

/* Late is what the database's clock says: this machine's may be wrong by any amount. */
static void a_late_query_is_dropped_without_a_call(void **state)
{
    struct pay_psp_queue *queue = *state;
    const int64_t database_us = INT64_C(1000000000);
    assert_false(is_shed(queue, "A", 1)); /* Nobody knows yet. */
    pay_psp_clock_learn(pay_psp_queue_clock(queue), database_us, pay_clock_mono_us());
    assert_true(is_shed(queue, "B", database_us - 1));
    /* An old word: the clock may have gone back since, and the query is in time. */
    pay_psp_clock_learn(pay_psp_queue_clock(queue), database_us, pay_clock_mono_us() - 60000000);
    assert_false(is_shed(queue, "D", database_us - 1));
    pay_psp_clock_learn(pay_psp_queue_clock(queue), database_us, pay_clock_mono_us());
    assert_false(is_shed(queue, "C", database_us + 60000000));
}

static void the_whole_is_bounded(void **state)
{
    struct pay_psp_queue *queue = *state;
    char id[2] = "a";
    for (int i = 0; i < 8; i++, id[0]++) {
        assert_int_equal(push(queue, NULL, PAY_JOB_QUERY, id, i), PAY_OK);
    }
    assert_true(pay_psp_queue_full(queue));
    assert_int_equal(push(queue, NULL, PAY_JOB_QUERY, id, 8), PAY_RETRY);
}

static void a_closed_queue_gives_nothing(void **state)
{
    struct pay_psp_queue *queue = *state;
    assert_int_equal(push(queue, &acme, PAY_JOB_SUBMIT, "A", 0), PAY_OK);
    pay_psp_queue_close(queue);
    assert_null(pay_psp_queue_take(queue));
    assert_int_equal(committed(queue), -1); /* It comes again. */
}

static void many_offsets_stay_in_order(void **state)
{
    (void)state;
    const struct pay_psp_queue_options options = {
        .tasks_max = 1000, .breaker_failures = 1, .breaker_open_us = 1, .retries_per_min = 1};
    struct pay_psp_queue *queue = pay_psp_queue_new(&options);
    struct pay_psp_task *first = NULL;
    char id[8];
    for (int i = 0; i < 500; i++) { /* The ring grows while its oldest entry is not done. */
        memcpy(id, "J000", 5);
        for (int digit = 3, rest = i; digit > 0; digit--, rest /= 10) {
            id[digit] = (char)('0' + rest % 10);
        }
        assert_int_equal(push(queue, NULL, PAY_JOB_QUERY, id, i), PAY_OK);
        struct pay_psp_task *task = pay_psp_queue_take(queue);
        if (i == 0) {
            first = task;
        } else {
            pay_psp_queue_done(queue, task, false);
        }
    }
    assert_int_equal(committed(queue), -1);
    pay_psp_queue_done(queue, first, false);
    assert_int_equal(committed(queue), 500);
    assert_null(pay_psp_queue_free(queue));
}

/* ---- the maximum of lanes ---- */

static enum pay_status push_lane(struct pay_psp_queue *queue, int number, struct pay_err *err)
{
    char name[32];
    (void)snprintf(name, sizeof name, "m%d", number);
    const struct pay_psp_job job = {.job_id = pay_str_of(name),
                                    .kind = PAY_JOB_SUBMIT,
                                    .method = pay_str_of(name),
                                    .not_after_us = NEVER_US};
    const struct pay_psp_record record = {.place = {0, number},
                                          .value = {(const uint8_t *)name, strlen(name)}};
    return pay_psp_queue_push(queue, &acme, &job, &record, err);
}

static void at_the_maximum_of_lanes_a_job_waits_and_an_idle_one_makes_room(void **state)
{
    (void)state;
    const struct pay_psp_queue_options options = {.tasks_max = (size_t)2 * PAY_PSP_LANES_MAX,
                                                  .breaker_failures = 1,
                                                  .breaker_open_us = NEVER_US,
                                                  .retries_per_min = 1};
    struct pay_psp_queue *queue = pay_psp_queue_new(&options);
    struct pay_err err = {.status = PAY_OK};
    for (int i = 0; i < PAY_PSP_LANES_MAX; i++) {
        assert_int_equal(push_lane(queue, i, &err), PAY_OK);
    }
    assert_int_equal(push_lane(queue, PAY_PSP_LANES_MAX, &err), PAY_RETRY);
    assert_int_equal(err.code, PAY_PSP_QUEUE_LANES);
    struct pay_psp_lane_figures figures = pay_psp_queue_lane_figures(queue);
    assert_int_equal(figures.lanes, PAY_PSP_LANES_MAX);
    assert_int_equal(figures.refused, 1);
    assert_false(pay_psp_queue_full(queue));

    /* One that runs is not idle, whether it makes a call or not; one that has ended is, unless it
     * has to remember that its PSP is sick. */
    struct pay_psp_task *task = pay_psp_queue_take(queue);
    assert_int_equal(push_lane(queue, PAY_PSP_LANES_MAX, &err), PAY_RETRY);
    pay_psp_queue_note(queue, task, false);
    pay_psp_queue_done(queue, task, false);
    assert_int_equal(push_lane(queue, PAY_PSP_LANES_MAX, &err), PAY_RETRY);
    task = pay_psp_queue_take(queue);
    pay_psp_queue_note(queue, task, true);
    pay_psp_queue_done(queue, task, false);
    assert_int_equal(push_lane(queue, PAY_PSP_LANES_MAX, &err), PAY_OK);
    figures = pay_psp_queue_lane_figures(queue);
    assert_int_equal(figures.lanes, PAY_PSP_LANES_MAX);
    assert_int_equal(figures.replaced, 1);
    assert_int_equal(figures.refused, 3);

    /* What was there is there still: each of them is given out once. */
    for (int i = 0; i < PAY_PSP_LANES_MAX - 1; i++) {
        task = pay_psp_queue_take(queue);
        assert_non_null(task);
        pay_psp_queue_done(queue, task, false);
    }
    assert_int_equal(committed(queue), PAY_PSP_LANES_MAX + 1);
    assert_null(pay_psp_queue_free(queue));
}

static void a_full_queue_says_so_and_makes_no_lane(void **state)
{
    struct pay_psp_queue *queue = *state;
    struct pay_err err = {.status = PAY_OK};
    for (int i = 0; i < 8; i++) {
        assert_int_equal(push_lane(queue, i, &err), PAY_OK);
    }
    assert_true(pay_psp_queue_full(queue));
    assert_int_equal(push_lane(queue, 8, &err), PAY_RETRY);
    assert_int_equal(err.code, PAY_PSP_QUEUE_FULL);
    assert_int_equal(pay_psp_queue_lane_figures(queue).lanes, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_task_carries_its_bytes, setup, teardown),
        cmocka_unit_test_setup_teardown(offsets_wait_for_the_oldest, setup, teardown),
        cmocka_unit_test_setup_teardown(an_unfinished_task_keeps_its_offset, setup, teardown),
        cmocka_unit_test_setup_teardown(a_dead_letter_counts_as_done, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_lane_sheds_and_the_others_go_on, setup, teardown),
        cmocka_unit_test_setup_teardown(an_open_breaker_fails_money_fast_and_holds_queries, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_second_copy_of_a_running_job_is_dropped, setup, teardown),
        cmocka_unit_test_setup_teardown(a_copy_from_the_same_place_is_not_done_before_the_first,
                                        setup, teardown),
        cmocka_unit_test(a_lane_leaves_workers_to_the_others),
        cmocka_unit_test_setup_teardown(new_limits_count_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(retries_have_a_budget, setup, teardown),
        cmocka_unit_test_setup_teardown(a_late_query_is_dropped_without_a_call, setup, teardown),
        cmocka_unit_test_setup_teardown(the_whole_is_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_closed_queue_gives_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(
            at_the_maximum_of_lanes_a_job_waits_and_an_idle_one_makes_room, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_queue_says_so_and_makes_no_lane, setup, teardown),
        cmocka_unit_test(many_offsets_stay_in_order),
    };
    return cmocka_run_group_tests_name("ingest.psp_queue", tests, NULL, NULL);
}
