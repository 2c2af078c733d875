/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/explorer/step.h"

#include <string.h>

#include "common/base/assert.h"
#include "tests/property/explorer/input.h"

#define CANCEL_SAYS_CANCELED 1
#define CANCEL_SAYS_REFUSED 2
#define TIRED 16
#define SHORT_CHARGE 16
#define SENDS_COUNTED \
    1 /* That there was one; the flags say whether it was given back or replayed. */

static const struct xp_kind *kind_of(const struct xp_config *config, const struct xp_attempt *a)
{
    return config->kinds[a->route % XP_ROUTES];
}

static uint16_t bit(int object)
{
    return (uint16_t)(1U << object);
}

static bool is_sending(const struct xp_gate *gate)
{
    return (gate->flags & XP_GATE_SENDING) != 0;
}

static bool was_replayed(const struct xp_attempt *a)
{
    return (a->submit.flags & XP_GATE_REPLAYED) != 0;
}

static bool is_over_at_psp(const struct xp_config *config, const struct xp_attempt *a)
{
    return kind_of(config, a)->expires && xp_time_reached(a->psp_until);
}

static bool waits_for_customer(uint8_t object)
{
    return object == XP_ACTION || object == XP_DECLINED || object == XP_APPROVED;
}

/* ------------------------------------------------------------------------------- what is possible
 */

struct list {
    const struct xp_config *config;
    const struct xp_world *world;
    struct xp_step *steps;
    size_t count;
};

static void add(struct list *list, enum xp_step_kind kind, int attempt, int arg)
{
    PAY_ASSERT(list->count < XP_STEPS_MAX);
    list->steps[list->count++] = (struct xp_step){(uint8_t)kind, (uint8_t)attempt, (uint8_t)arg};
}

static void list_execute(struct list *list, int index, const struct xp_attempt *a)
{
    const struct xp_kind *kind = kind_of(list->config, a);
    const bool is_over = is_over_at_psp(list->config, a);

    for (int object = XP_REFUSED; object < XP_OBJECT_COUNT; object++) {
        if ((kind->creates & bit(object)) != 0 && (!is_over || object == XP_REFUSED)) {
            add(list, XP_STEP_EXECUTE, index, object);
        }
    }
    if ((list->config->traits & XP_SHORT_CHARGE) != 0 && (kind->creates & bit(XP_CHARGED)) != 0) {
        add(list, XP_STEP_EXECUTE, index, XP_CHARGED + SHORT_CHARGE);
    }
}

static void list_moves(struct list *list, int index, const struct xp_attempt *a)
{
    const bool is_over = is_over_at_psp(list->config, a);
    const struct xp_kind *kind = kind_of(list->config, a);
    const uint16_t moves = kind->moves[a->object];
    const bool has_no_code = kind->hides_unpaid && a->actions == 0;
    const bool waits = waits_for_customer(a->object) && (is_over || has_no_code);

    for (int object = XP_PROCESSING; object < XP_OBJECT_COUNT; object++) {
        if ((moves & bit(object)) != 0 && !waits) {
            add(list, XP_STEP_MOVE, index, object);
        }
    }
    if (is_over && waits_for_customer(a->object)) {
        add(list, XP_STEP_EXPIRE, index, 0);
    }
    if ((list->config->traits & XP_REVERSALS) != 0 && a->object == XP_CHARGED && a->reversed == 0) {
        add(list, XP_STEP_REVERSE, index, 0);
    }
}

static void list_confirms(struct list *list, int index, const struct xp_attempt *a)
{
    for (int n = 1; n <= XP_CONFIRMS_MAX; n++) {
        const struct xp_gate *gate = &a->confirm[n - 1];
        if ((gate->flags & XP_GATE_EXISTS) == 0) {
            continue;
        }
        if (xp_gate_passable(gate)) {
            add(list, XP_STEP_CONFIRM_GATE, index, n);
        }
        if ((a->confirm_wire >> n & 1) != 0) {
            add(list, XP_STEP_CONFIRM_FREE, index, n);
            add(list, XP_STEP_CONFIRM_EXECUTE, index, 16 * n + XP_CHARGED);
            add(list, XP_STEP_CONFIRM_EXECUTE, index, 16 * n + XP_DECLINED);
        }
        add(list, XP_STEP_NOT_SENT, index, n);
        if (gate->sends > 0) {
            add(list, XP_STEP_UNKNOWN, index, n);
        }
    }
    if (a->confirm_answer != 0) {
        add(list, XP_STEP_CONFIRM_ANSWER, index, a->confirm_answered);
    }
}

static void list_senders(struct list *list, int index, const struct xp_attempt *a)
{
    if (xp_gate_passable(&a->submit)) {
        add(list, XP_STEP_GATE, index, 0);
    }
    if (a->wire_until != 0 && a->object == XP_NONE) {
        list_execute(list, index, a);
        if (is_sending(&a->submit) && !was_replayed(a)) {
            add(list, XP_STEP_FREE, index, 0);
        }
    }
    if ((list->config->traits & XP_SECOND_OBJECT) != 0 && was_replayed(a) &&
        a->object > XP_REFUSED && a->second == XP_NONE) {
        add(list, XP_STEP_SECOND, index, 0);
    }
    if (a->cancel_jobs != 0) {
        add(list, XP_STEP_CANCEL_ASK, index, 0);
    }
}

static bool can_replay(const struct xp_config *config, const struct xp_world *world,
                       const struct xp_attempt *a)
{
    return kind_of(config, a)->replays && is_sending(&a->submit) &&
           (a->submit.flags & XP_GATE_CLOSED) == 0 && a->references == 0 &&
           !xp_is_final(a->status) && !xp_time_reached(world->expires_at);
}

static bool slot_is_free(const struct xp_config *config, const struct xp_world *world)
{
    for (int i = 0; i < config->slots; i++) {
        if (world->slots[i].attempt == 0) {
            return true;
        }
    }
    return false;
}

static void list_queries(struct list *list, int index, const struct xp_attempt *a)
{
    const struct xp_kind *kind = kind_of(list->config, a);
    const bool is_known = a->references != 0;
    const uint8_t seen_from = (uint8_t)(a->object_at + 2 * list->config->times.grace);
    const bool is_fresh = a->object_at != 0 && xp_time_in(0) <= seen_from;
    const bool misreads = (list->config->traits & XP_MISREADS) != 0;
    const bool lags = kind->by_search || (kind->by_number && (is_fresh || misreads));

    if (can_replay(list->config, list->world, a)) {
        add(list, XP_STEP_REPLAY, index, 0);
    }
    if (a->status == PAY_ATTEMPT_CREATED || !slot_is_free(list->config, list->world) ||
        !(is_known || kind->by_number || kind->by_search)) {
        return;
    }
    add(list, XP_STEP_ASK, index, 0);
    if (!is_known && lags && a->object > XP_REFUSED) {
        add(list, XP_STEP_ASK, index, 1);
    }
}

static void list_deliveries(struct list *list, int index, const struct xp_attempt *a)
{
    add(list, XP_STEP_NOT_SENT, index, 0);
    if (a->submit.sends > 0) {
        add(list, XP_STEP_SUBMITTED, index, 0);
        add(list, XP_STEP_UNKNOWN, index, 0);
    }
    if ((a->answers & XP_ANSWER_FIRST) != 0) {
        add(list, XP_STEP_ANSWER, index, 0);
    }
    if ((a->answers & XP_ANSWER_REFUSED) != 0) {
        add(list, XP_STEP_REFUSED_ANSWER, index, 0);
    }
    if ((a->answers & XP_ANSWER_REPLAY) != 0) {
        add(list, XP_STEP_REPLAY_ANSWER, index, 0);
    }
    if (a->cancel_answer != 0) {
        add(list, XP_STEP_CANCEL_ANSWER, index, 0);
    }
    if (a->second_hook != 0) {
        add(list, XP_STEP_SECOND_CALLBACK, index, 0);
    }
    if (a->reversed != 0) {
        add(list, XP_STEP_REVERSE_CALLBACK, index, 0);
    }
    for (int object = XP_PROCESSING; object < XP_OBJECT_COUNT; object++) {
        if ((a->hooks >> (object - XP_PROCESSING) & 1) != 0) {
            add(list, XP_STEP_CALLBACK, index, object);
        }
    }
}

static void list_deadlines(struct list *list, int index, const struct xp_attempt *a)
{
    for (int kind = 0; kind < XP_DUE_KINDS; kind++) {
        if (kind == PAY_DEADLINE_QUERY || !xp_time_reached(a->due[kind])) { /* Recovery asks. */
            continue;
        }
        add(list, XP_STEP_DEADLINE, index, kind);
        if (kind == PAY_DEADLINE_ACTION && a->cancels == 1) {
            add(list, XP_STEP_DEADLINE, index, kind + TIRED);
        }
    }
}

static void list_commands(struct list *list)
{
    const struct xp_world *world = list->world;
    const uint8_t open = (uint8_t)(list->config->commands & ~world->commands);

    for (int command = 1; command <= XP_CHANGE_SAME; command *= 2) {
        if ((open & command) == 0) {
            continue;
        }
        if (command != XP_CONTINUE) {
            add(list, XP_STEP_COMMAND, 0, command);
            continue;
        }
        for (int i = 0; i < world->attempt_count; i++) {
            add(list, XP_STEP_COMMAND, i, command);
        }
    }
}

size_t xp_step_list(const struct xp_config *config, const struct xp_world *world,
                    struct xp_step steps[XP_STEPS_MAX])
{
    struct list list = {config, world, steps, 0};

    if (world->exists == 0) {
        add(&list, XP_STEP_CREATE, 0, 0);
        return list.count;
    }
    for (int i = 0; i < world->attempt_count; i++) {
        const struct xp_attempt *a = &world->attempts[i];
        list_senders(&list, i, a);
        list_moves(&list, i, a);
        list_deliveries(&list, i, a);
        list_confirms(&list, i, a);
        list_queries(&list, i, a);
        list_deadlines(&list, i, a);
    }
    for (int i = 0; i < config->slots; i++) {
        if (world->slots[i].attempt != 0) {
            add(&list, XP_STEP_QUERY_ANSWER, world->slots[i].attempt - 1, i);
        }
    }
    if (xp_time_reached(world->order_due)) {
        add(&list, XP_STEP_ORDER_EXPIRY, 0, 0);
    }
    list_commands(&list);
    add(&list, XP_STEP_TICK, 0, 0);
    return list.count;
}

/* --------------------------------------------------------------------------------- at the PSPs */

static void count(uint8_t *counter, uint8_t most)
{
    if (*counter < most) {
        (*counter)++;
    }
}

static void become(const struct xp_config *config, struct xp_attempt *a, uint8_t object)
{
    if (a->object == XP_NONE && object > XP_REFUSED && config->times.grace > 0) {
        a->object_at = xp_time_in(0);
    }
    a->object = object;
    if (object == XP_APPROVED) {
        count(&a->approvals, XP_CONFIRMS_MAX);
    }
    if (object >= XP_PROCESSING) {
        a->hooks |= (uint8_t)(1U << (object - XP_PROCESSING));
    }
}

/* A definite no only if no other send exists that was not certainly unsent. */
static void at_refuse(const struct xp_config *config, struct xp_attempt *a)
{
    const bool is_definite = !was_replayed(a);

    a->answers |= is_definite ? XP_ANSWER_REFUSED : 0;
    a->wire_until = 0;
    if ((config->traits & XP_FORGETS_REFUSAL) == 0) {
        a->object = XP_REFUSED;
    }
}

static void at_execute(const struct xp_config *config, struct xp_attempt *a, uint8_t arg)
{
    const uint8_t object = arg % SHORT_CHARGE;

    if (object == XP_REFUSED) {
        at_refuse(config, a);
        return;
    }
    become(config, a, object);
    a->is_short = arg >= SHORT_CHARGE;
    a->wire_until = 0;
    a->first_answer = object;
    a->answers |= XP_ANSWER_FIRST;
    a->answers |= was_replayed(a) ? XP_ANSWER_REPLAY : 0;
}

static void at_confirm_execute(const struct xp_config *config, struct xp_attempt *a, uint8_t arg)
{
    const int number = arg / 16;
    const uint8_t object = arg % 16;

    a->confirm_wire &= (uint8_t)~(1U << number);
    if (a->object == XP_APPROVED) {
        become(config, a, object);
        a->confirm_answer = object;
        a->confirm_answered = (uint8_t)number;
    } else if (a->object == XP_CANCELED) {
        a->confirm_answer = XP_REFUSED;
        a->confirm_answered = (uint8_t)number;
    }
}

/* A cancel of what the PSP does not have yet answers "canceled" and cancels nothing. */
static void at_cancel(const struct xp_config *config, struct xp_attempt *a)
{
    const bool can_name_it = kind_of(config, a)->by_number || a->references != 0;

    a->cancel_jobs = 0;
    if (waits_for_customer(a->object) && can_name_it) {
        become(config, a, XP_CANCELED);
    }
    const bool says_canceled = can_name_it && (a->object == XP_CANCELED || a->object == XP_NONE ||
                                               a->object == XP_REFUSED);
    a->cancel_answer = says_canceled ? CANCEL_SAYS_CANCELED : CANCEL_SAYS_REFUSED;
}

/* A send at that moment may be executed until then. */
static uint8_t wire_from(const struct xp_config *config, uint8_t sent_at)
{
    if ((config->traits & XP_LATE_EXECUTION) != 0) {
        return XP_NEVER;
    }
    return xp_time_after(sent_at, config->times.call_budget + config->times.longest);
}

static void pass(struct xp_gate *gate)
{
    gate->flags |= XP_GATE_SENDING;
    count(&gate->sends, SENDS_COUNTED);
}

static uint8_t later(uint8_t a, uint8_t b)
{
    return a > b ? a : b;
}

static void at_gate(const struct xp_config *config, struct xp_attempt *a)
{
    pass(&a->submit);
    a->wire_until = later(a->wire_until, wire_from(config, a->submit.not_after));
}

static void at_confirm_gate(const struct xp_config *config, struct xp_attempt *a, int number)
{
    struct xp_gate *gate = &a->confirm[number - 1];
    pass(gate);
    a->confirm_wire |= (uint8_t)(1U << number);
    a->confirm_until = later(a->confirm_until, wire_from(config, gate->not_after));
}

static void give_back(struct xp_gate *gate)
{
    gate->flags &= (uint8_t)~XP_GATE_SENDING;
}

/* What is at the PSP already answers at once; else the replay is one more request on its way. */
static void at_replay(const struct xp_config *config, struct xp_attempt *a)
{
    a->submit.flags |= XP_GATE_REPLAYED;
    a->submit.last_send = xp_time_in(0);
    if (a->object == XP_NONE) {
        a->wire_until = later(a->wire_until, wire_from(config, xp_time_in(0)));
    } else if (a->object != XP_REFUSED) {
        a->answers |= XP_ANSWER_REPLAY;
    }
}

static void at_ask(const struct xp_config *config, struct xp_world *world, int index, bool lags)
{
    const struct xp_attempt *a = &world->attempts[index];
    struct xp_slot *slot = world->slots;
    enum pay_query_by query_by = PAY_QUERY_BY_SEARCH;

    const bool is_hidden = kind_of(config, a)->hides_unpaid && a->object == XP_ACTION;
    const bool is_absent = lags || is_hidden || a->object <= XP_REFUSED;
    const bool says_closed = (config->traits & XP_ABSENT_IS_CLOSED) != 0;

    while (slot->attempt != 0) {
        slot++;
    }
    if (a->references != 0) {
        query_by = PAY_QUERY_BY_PSP_REFERENCE;
    } else if (kind_of(config, a)->by_number) {
        query_by = PAY_QUERY_BY_REQUEST_NUMBER;
    }
    *slot = (struct xp_slot){
        .attempt = (uint8_t)(index + 1),
        .asked_at = xp_time_in(0),
        .object = !is_absent ? a->object : (uint8_t)(says_closed ? XP_CANCELED : XP_NONE),
        .query_by = (uint8_t)query_by,
    };
}

/* -------------------------------------------------------------------------------- to the core */

struct apply {
    const struct xp_config *config;
    struct xp_world *world;
    struct xp_step step;
    struct xp_result *result;
    struct xp_violation *violation;
};

static bool was_accepted(const struct pay_decision *decision)
{
    for (size_t i = 0; i < decision->effect_count; i++) {
        if (decision->effects[i].kind == PAY_EFFECT_FACT &&
            decision->effects[i].as.fact.type == PAY_FACT_COMMAND_ACCEPTED) {
            return true;
        }
    }
    return false;
}

/* What the checks know by themselves of the merchant's words. */
static void note_command(const struct apply *apply, const struct pay_decision *decision)
{
    struct xp_world *world = apply->world;
    const uint8_t window = xp_time_in(apply->config->times.failover);

    if (!was_accepted(decision)) {
        return;
    }
    world->window = later(world->window, window);
    if (apply->step.kind == XP_STEP_COMMAND) {
        world->commands |= apply->step.arg;
        world->is_canceled |= apply->step.arg == XP_CANCEL ? 1 : 0;
    }
}

static bool decide(const struct apply *apply, const struct pay_decide_input *input, bool tired)
{
    const struct xp_world before = *apply->world;
    const bool by_command = input->kind == PAY_INPUT_COMMAND;
    const struct xp_decided decided = xp_bench_decide(apply->world, input, tired);

    apply->result->is_beyond = decided.is_beyond;
    apply->result->verdict = pay_verdict_name(decided.decision->verdict);
    apply->result->reason_code = decided.decision->reason_code;
    apply->result->cases = xp_cases(apply->world);
    if (by_command) {
        note_command(apply, decided.decision);
    }
    const struct xp_transition t = {
        .config = apply->config,
        .before = &before,
        .after = apply->world,
        .decided = &decided,
        .by_command = by_command,
        .is_not_found = input->event != NULL && input->event->type == PAY_EV_ATTEMPT_NOT_FOUND,
    };
    return xp_check_decision(&t, apply->violation);
}

static bool say(const struct apply *apply, struct xp_saying saying)
{
    const struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];

    saying.attempt = apply->step.attempt;
    saying.is_nameless |=
        saying.type == PAY_EV_ATTEMPT_ACTION_REQUIRED && kind_of(apply->config, a)->names_late;
    const struct pay_decide_input *input = xp_input_say(apply->world, &saying);
    if (saying.type == PAY_EV_ATTEMPT_SUCCEEDED) {
        const uint8_t told = input->evidence >= PAY_EVIDENCE_WEBHOOK ? 2 : 1;
        apply->world->told = later(apply->world->told, told);
    }
    return decide(apply, input, false);
}

static bool say_by_us(const struct apply *apply, enum pay_event_type type)
{
    const struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];
    const struct xp_gate *gate =
        apply->step.arg > 0 ? &a->confirm[apply->step.arg - 1] : &a->submit;
    return say(apply, (struct xp_saying){.channel = XP_BY_US,
                                         .type = type,
                                         .number = apply->step.arg,
                                         .send_no = gate->sends});
}

static bool say_answer(const struct apply *apply, enum xp_channel channel)
{
    const struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];
    return say(apply, (struct xp_saying){.channel = channel,
                                         .type = xp_event_of(a->first_answer),
                                         .send_no = channel == XP_BY_REPLAY ? 2 : 1,
                                         .is_short = a->is_short != 0,
                                         .hands_out = a->first_answer == XP_ACTION});
}

static bool say_cancel_answer(const struct apply *apply)
{
    const struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];
    const bool is_canceled = a->cancel_answer == CANCEL_SAYS_CANCELED;
    return say(apply, (struct xp_saying){.channel = XP_BY_CANCEL_ANSWER,
                                         .type = is_canceled ? PAY_EV_ATTEMPT_CANCELED
                                                             : PAY_EV_CANCEL_REFUSED,
                                         .send_no = 1});
}

static bool say_query_answer(const struct apply *apply)
{
    struct xp_slot *slot = &apply->world->slots[apply->step.arg];
    const struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];
    const struct xp_saying saying = {.channel = XP_BY_QUERY,
                                     .type = xp_event_of(slot->object),
                                     .send_no = 1,
                                     .query_by = (enum pay_query_by)slot->query_by,
                                     .asked_at = slot->asked_at,
                                     .is_nameless = slot->object == XP_CANCELED &&
                                                    slot->query_by == PAY_QUERY_BY_REQUEST_NUMBER,
                                     .is_short = a->is_short != 0};
    *slot = (struct xp_slot){0};
    return say(apply, saying);
}

static bool deliver(const struct apply *apply)
{
    struct xp_world *world = apply->world;
    const struct xp_step step = apply->step;
    const struct xp_attempt *a = &world->attempts[step.attempt];

    switch (step.kind) {
    case XP_STEP_SUBMITTED:
        return say_by_us(apply, PAY_EV_ATTEMPT_SUBMITTED);
    case XP_STEP_NOT_SENT:
        return say_by_us(apply, PAY_EV_ATTEMPT_NOT_SENT);
    case XP_STEP_UNKNOWN:
        return say_by_us(apply, PAY_EV_ATTEMPT_UNKNOWN);
    case XP_STEP_ANSWER:
        return say_answer(apply, XP_BY_ANSWER);
    case XP_STEP_REFUSED_ANSWER:
        return say(apply, (struct xp_saying){.channel = XP_BY_ANSWER,
                                             .type = PAY_EV_ATTEMPT_FAILED,
                                             .send_no = 1});
    case XP_STEP_REPLAY_ANSWER:
        return say_answer(apply, XP_BY_REPLAY);
    case XP_STEP_CONFIRM_ANSWER:
        return say(apply, (struct xp_saying){.channel = XP_BY_CONFIRM_ANSWER,
                                             .type = xp_event_of(a->confirm_answer),
                                             .number = step.arg,
                                             .send_no = 1});
    case XP_STEP_CANCEL_ANSWER:
        return say_cancel_answer(apply);
    case XP_STEP_CALLBACK:
        return say(apply, (struct xp_saying){.channel = XP_BY_CALLBACK,
                                             .type = xp_event_of(step.arg),
                                             .is_short = a->is_short != 0});
    case XP_STEP_SECOND_CALLBACK:
        return say(apply, (struct xp_saying){.channel = XP_BY_CALLBACK,
                                             .type = PAY_EV_ATTEMPT_SUCCEEDED,
                                             .reference = XP_REFERENCE_SECOND});
    case XP_STEP_REVERSE_CALLBACK: /* It proves the payment: the adapter says that first. */
        return say(apply, (struct xp_saying){.channel = XP_BY_CALLBACK,
                                             .type = PAY_EV_ATTEMPT_SUCCEEDED}) &&
               say(apply, (struct xp_saying){.channel = XP_BY_CALLBACK,
                                             .type = PAY_EV_ATTEMPT_REVERSED,
                                             .reference = XP_REFERENCE_REVERSAL});
    default:
        return say_query_answer(apply);
    }
}

static bool by_the_clock(const struct apply *apply)
{
    struct xp_world *world = apply->world;
    const int kind = apply->step.arg % TIRED;

    if (apply->step.kind == XP_STEP_ORDER_EXPIRY) {
        return decide(
            apply,
            xp_input_deadline(PAY_DEADLINE_ORDER_EXPIRY, -1, world->order_due, world->order_due),
            false);
    }
    const uint8_t due = world->attempts[apply->step.attempt].due[kind];
    return decide(apply,
                  xp_input_deadline((enum pay_deadline_kind)kind, apply->step.attempt, due, due),
                  apply->step.arg >= TIRED);
}

/* ------------------------------------------------------------------------------------ applying */

static bool sends(const struct apply *apply)
{
    struct xp_attempt *a = &apply->world->attempts[apply->step.attempt];

    if (!xp_check_send(apply->config, apply->world, apply->step.attempt, apply->violation)) {
        return false;
    }
    if (apply->step.kind == XP_STEP_GATE) {
        at_gate(apply->config, a);
    } else if (apply->step.kind == XP_STEP_REPLAY) {
        at_replay(apply->config, a);
    } else {
        at_confirm_gate(apply->config, a, apply->step.arg);
    }
    return true;
}

static bool outside(const struct apply *apply)
{
    const struct xp_config *config = apply->config;
    struct xp_world *world = apply->world;
    struct xp_attempt *a = &world->attempts[apply->step.attempt];
    const uint8_t arg = apply->step.arg;

    switch (apply->step.kind) {
    case XP_STEP_TICK:
        xp_world_tick(world);
        break;
    case XP_STEP_FREE:
        give_back(&a->submit);
        a->wire_until = 0;
        break;
    case XP_STEP_EXECUTE:
        at_execute(config, a, arg);
        break;
    case XP_STEP_SECOND:
        a->second = XP_CHARGED;
        a->second_hook = 1;
        break;
    case XP_STEP_MOVE:
        become(config, a, arg);
        break;
    case XP_STEP_EXPIRE:
        become(config, a, XP_CANCELED);
        break;
    case XP_STEP_REVERSE:
        a->reversed = 1;
        break;
    case XP_STEP_CONFIRM_FREE:
        give_back(&a->confirm[arg - 1]);
        a->confirm_wire &= (uint8_t)~(1U << arg);
        break;
    case XP_STEP_CONFIRM_EXECUTE:
        at_confirm_execute(config, a, arg);
        break;
    case XP_STEP_ASK:
        at_ask(config, world, apply->step.attempt, arg != 0);
        break;
    default:
        at_cancel(config, a);
        break;
    }
    return xp_check_truth(config, world, apply->violation);
}

static bool happen(const struct apply *apply)
{
    const struct xp_config *config = apply->config;
    const struct xp_step step = apply->step;

    switch (step.kind) {
    case XP_STEP_CREATE:
        return decide(apply, xp_input_command(config, 0, 0), false);
    case XP_STEP_COMMAND:
        return decide(apply, xp_input_command(config, step.arg, step.attempt), false);
    case XP_STEP_GATE:
    case XP_STEP_CONFIRM_GATE:
    case XP_STEP_REPLAY:
        return sends(apply);
    case XP_STEP_DEADLINE:
    case XP_STEP_ORDER_EXPIRY:
        return by_the_clock(apply);
    default:
        return step.kind >= XP_STEP_SUBMITTED ? deliver(apply) : outside(apply);
    }
}

bool xp_step_apply(const struct xp_config *config, struct xp_world *world, struct xp_step step,
                   struct xp_result *ret_result, struct xp_violation *violation)
{
    const struct apply apply = {config, world, step, ret_result, violation};

    *ret_result = (struct xp_result){0};
    const bool holds = happen(&apply);
    xp_world_settle(config, world);
    return holds;
}
