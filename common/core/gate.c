/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/gate.h"

#include <string.h>

#include "common/base/banned.h"

static bool is_of(const struct pay_turn *turn, const struct pay_gate *gate, int attempt_index)
{
    const bool starts = gate->kind == PAY_JOB_SUBMIT || gate->kind == PAY_JOB_CONFIRM;
    return starts &&
           strcmp(gate->action_id, pay_turn_attempt(turn, attempt_index)->attempt_id) == 0;
}

static bool closed_unsent(const struct pay_gate *gate)
{
    return gate->closed_at_us != 0 && gate->sending_at_us == 0;
}

static void add(struct pay_gate_sum *sum, const struct pay_gate *gate)
{
    const bool is_sent = gate->sending_at_us != 0;
    const int64_t last_us = pay_time_later(gate->not_after_us, gate->last_send_at_us);

    sum->made += 1 + gate->past.made;
    sum->open += !is_sent && gate->closed_at_us == 0 ? 1 : 0;
    sum->sent += (is_sent ? 1 : 0) + gate->past.sent;
    sum->sends += (is_sent ? gate->sends : 0) + gate->past.sends;
    sum->last_us = pay_time_later(sum->last_us, pay_time_later(last_us, gate->past.last_us));
}

struct pay_gate_sum pay_gate_sum(const struct pay_turn *turn, const char *action_id,
                                 enum pay_job_kind kind)
{
    struct pay_gate_sum sum = {.made = 0};
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        const struct pay_gate *gate = &turn->snap->gates[i];
        if (gate->kind == kind && strcmp(gate->action_id, action_id) == 0) {
            add(&sum, gate);
        }
    }
    return sum;
}

struct pay_gate *pay_gate_of_job(const struct pay_turn *turn, struct pay_str job_id)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        if (pay_str_eq_c(job_id, turn->snap->gates[i].job_id)) {
            return &turn->snap->gates[i];
        }
    }
    return NULL;
}

struct pay_gate *pay_gate_submit(const struct pay_turn *turn, int attempt_index)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        struct pay_gate *gate = &turn->snap->gates[i];
        if (gate->kind == PAY_JOB_SUBMIT && is_of(turn, gate, attempt_index)) {
            return gate;
        }
    }
    return NULL;
}

void pay_gate_close(const struct pay_turn *turn, struct pay_gate *gate)
{
    if (gate->closed_at_us == 0) {
        gate->closed_at_us = turn->in->now_us;
        pay_row_touch(&gate->change);
    }
}

void pay_gate_close_all(const struct pay_turn *turn, int attempt_index)
{
    for (size_t i = 0; i < turn->snap->gate_count; i++) {
        if (is_of(turn, &turn->snap->gates[i], attempt_index)) {
            pay_gate_close(turn, &turn->snap->gates[i]);
        }
    }
}

bool pay_gate_never_sent(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_gate *gate = pay_gate_submit(turn, attempt_index);
    return gate != NULL && closed_unsent(gate);
}

bool pay_gate_confirm_sent(const struct pay_turn *turn, int attempt_index)
{
    return pay_gate_confirms(turn, attempt_index) > 0;
}

static struct pay_gate_sum sum_of(const struct pay_turn *turn, int attempt_index,
                                  enum pay_job_kind kind)
{
    return pay_gate_sum(turn, pay_turn_attempt(turn, attempt_index)->attempt_id, kind);
}

int pay_gate_confirms(const struct pay_turn *turn, int attempt_index)
{
    const struct pay_gate_sum sum = sum_of(turn, attempt_index, PAY_JOB_CONFIRM);
    return sum.open + sum.sent;
}

int64_t pay_gate_last_send(const struct pay_turn *turn, int attempt_index)
{
    return pay_time_later(sum_of(turn, attempt_index, PAY_JOB_SUBMIT).last_us,
                          sum_of(turn, attempt_index, PAY_JOB_CONFIRM).last_us);
}
