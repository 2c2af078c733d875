/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/money/step.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "tests/property/money/input.h"

#define NOT_NOW 16
#define LAST 16
#define AT_END 16

static struct mx_action *action_of(struct mx_world *world, struct mx_step step)
{
    return step.money == PAY_MONEY_CAPTURE ? &world->captures[step.index]
                                           : &world->refunds[step.index];
}

int mx_own_object(const struct mx_action *action, int index)
{
    return action->origin == PAY_ORIGIN_PSP ? MX_CONSOLE : index;
}

/* Under our own number. */
static struct mx_object_state *own_object(struct mx_world *world, struct mx_step step)
{
    const struct mx_action *action = action_of(world, step);
    struct mx_attempt *attempt = &world->attempts[action->attempt];
    const int o = mx_own_object(action, step.index);
    return step.money == PAY_MONEY_CAPTURE ? &attempt->captures[o] : &attempt->refunds[o];
}

static bool is_open(const struct mx_action *action)
{
    return action->exists != 0 && pay_money_is_open((enum pay_money_status)action->status);
}

bool mx_may_come(const struct mx_action *action, const struct mx_object_state *object)
{
    if (object->state == MX_PENDING) {
        return true;
    }
    if (object->state != MX_NONE) {
        return false;
    }
    for (int n = 0; n < MX_JOBS; n++) {
        const uint8_t gate = action->jobs[n];
        if ((gate & MX_GATE_EXISTS) != 0 && (gate & MX_GATE_SENDING) == 0 &&
            (gate & MX_GATE_CLOSED) == 0) {
            return true; /* It may still be sent. */
        }
    }
    return action->wire != 0;
}

int mx_held(const struct mx_world *world, enum pay_money_kind kind, int attempt, bool with_pending)
{
    const struct mx_attempt *a = &world->attempts[attempt];
    const struct mx_object_state *objects = kind == PAY_MONEY_CAPTURE ? a->captures : a->refunds;
    int sum = 0;

    for (int o = 0; o < MX_OBJECTS; o++) {
        const bool counts =
            objects[o].state == MX_DONE || (with_pending && objects[o].state == MX_PENDING);
        sum += counts ? objects[o].amount : 0;
    }
    return sum;
}

/* What the PSP would let be given back, or taken. */
static int room_at_psp(const struct mx_config *config, const struct mx_world *world,
                       enum pay_money_kind kind, int attempt)
{
    const struct mx_attempt *a = &world->attempts[attempt];

    if (kind == PAY_MONEY_CAPTURE) {
        return a->voided != 0 ? 0 : a->holds - mx_held(world, kind, attempt, true);
    }
    const int captured =
        config->is_manual != 0 ? mx_held(world, PAY_MONEY_CAPTURE, attempt, false) : a->holds;
    return captured - mx_held(world, kind, attempt, true);
}

/* ---------------------------------------------------------------------------------- what is
 * possible */

struct list {
    const struct mx_config *config;
    const struct mx_world *world;
    struct mx_step *steps;
    size_t count;
};

static void add(struct list *list, enum mx_step_kind kind, int money, int index, int arg)
{
    PAY_ASSERT(list->count < MX_STEPS_MAX);
    list->steps[list->count++] =
        (struct mx_step){(uint8_t)kind, (uint8_t)money, (uint8_t)index, (uint8_t)arg};
}

static int count_own(const struct mx_action *actions, int most)
{
    int count = 0;
    for (int i = 0; i < most; i++) {
        count += actions[i].exists != 0 && actions[i].origin != PAY_ORIGIN_PSP ? 1 : 0;
    }
    return count;
}

static void list_commands(struct list *list)
{
    const struct mx_config *config = list->config;
    const struct mx_world *world = list->world;

    if (count_own(world->refunds, MX_REFUNDS) < config->refunds) {
        for (int a = 0; a < config->attempts; a++) {
            for (int amount = 1; amount <= config->held; amount++) {
                add(list, MX_REFUND, PAY_MONEY_REFUND, a, amount);
            }
        }
    }
    if (config->is_manual == 0) {
        return;
    }
    if (count_own(world->captures, MX_CAPTURES) < config->captures) {
        for (int amount = 1; amount <= config->held; amount++) {
            add(list, MX_CAPTURE, PAY_MONEY_CAPTURE, 0, amount);
            add(list, MX_CAPTURE, PAY_MONEY_CAPTURE, 0, amount + LAST);
        }
    }
    if ((world->commands & 1) == 0) {
        add(list, MX_CANCEL, PAY_MONEY_CAPTURE, 0, 0);
    }
}

static void list_wire(struct list *list, int money, int index, const struct mx_action *action,
                      const struct mx_object_state *object)
{
    const bool fits = room_at_psp(list->config, list->world, (enum pay_money_kind)money,
                                  action->attempt) >= action->amount;
    if (object->state == MX_NONE) {
        if (fits) {
            add(list, MX_EXECUTE, money, index, MX_PENDING);
            add(list, MX_EXECUTE, money, index, MX_DONE);
        }
        add(list, MX_EXECUTE, money, index, MX_REFUSED);
        if (list->config->says_not_now != 0 && money == PAY_MONEY_REFUND) {
            add(list, MX_EXECUTE, money, index, NOT_NOW);
        }
        add(list, MX_FREE, money, index, 0);
    } else { /* The same number again: it says what it has. */
        add(list, MX_EXECUTE, money, index, object->state);
    }
}

static void list_sends(struct list *list, int money, int index, const struct mx_action *action)
{
    if ((action->jobs[0] & MX_GATE_EXISTS) == 0) {
        return;
    }
    for (int n = 0; n < MX_JOBS; n++) {
        const uint8_t gate = action->jobs[n] & (MX_GATE_EXISTS | MX_GATE_SENDING | MX_GATE_CLOSED);
        if (gate == MX_GATE_EXISTS && action->is_old == 0) {
            add(list, MX_PASS, money, index, n);
        }
    }
    if (action->is_old == 0) {
        add(list, MX_OLD, money, index, 0);
    }
    add(list, MX_SAY, money, index, PAY_ME_NOT_SENT);
}

static int sends_of(const struct mx_action *action)
{
    int sends = 0;
    for (int n = 0; n < MX_JOBS; n++) {
        sends += (action->jobs[n] & MX_GATE_SENDING) != 0 ? 1 : 0;
    }
    return sends;
}

/* A definite no is read only of the only send. */
static void list_words(struct list *list, int money, int index, const struct mx_action *action,
                       const struct mx_object_state *object)
{
    const int sends = sends_of(action);

    if (sends > 0) {
        add(list, MX_SAY, money, index, PAY_ME_SUBMITTED);
        add(list, MX_SAY, money, index, PAY_ME_UNKNOWN);
    }
    for (int state = 0; state < MX_OBJECT_COUNT; state++) {
        const bool is_definite = state != MX_REFUSED || sends == 1;
        if (action->origin != PAY_ORIGIN_PSP && (object->answers >> state & 1) != 0 &&
            is_definite) {
            add(list, MX_ANSWER, money, index, state);
        }
    }
}

static void list_dues(struct list *list, int money, int index, const struct mx_action *action)
{
    for (int bit = 0; bit < MX_DUES; bit++) {
        const bool waits = (action->due >> bit & 1) != 0;
        const bool is_time = bit != PAY_DEADLINE_SEND || action->is_old != 0 || action->retry != 0;
        if (waits && is_time) {
            add(list, MX_DUE, money, index, bit);
        }
        if (waits && bit == PAY_DEADLINE_SEND && action->is_old != 0) {
            add(list, MX_DUE, money, index, bit + AT_END);
        }
    }
}

static void list_action(struct list *list, int money, int index)
{
    const struct mx_world *world = list->world;
    const bool is_capture = money == PAY_MONEY_CAPTURE;
    const struct mx_action *action = is_capture ? &world->captures[index] : &world->refunds[index];
    const struct mx_attempt *a = &world->attempts[action->attempt];
    const int own = mx_own_object(action, index);
    const struct mx_object_state *object = is_capture ? &a->captures[own] : &a->refunds[own];

    list_sends(list, money, index, action);
    if (action->wire != 0) {
        list_wire(list, money, index, action, object);
    }
    list_words(list, money, index, action, object);
    list_dues(list, money, index, action);
    if (list->config->queries != 0 && world->slot.is_set == 0 &&
        action->status != PAY_MONEY_CREATED) {
        add(list, MX_ASK, money, index, 0);
    }
}

static uint8_t console_amount(const struct mx_config *config)
{
    return config->console_amount == 0 ? 1 : config->console_amount;
}

static void list_object(struct list *list, int attempt, int money, int o)
{
    const struct mx_attempt *a = &list->world->attempts[attempt];
    const struct mx_object_state *object =
        money == PAY_MONEY_CAPTURE ? &a->captures[o] : &a->refunds[o];

    if (object->state == MX_PENDING) {
        add(list, MX_MOVE, money, attempt, 16 * o + MX_DONE);
        add(list, MX_MOVE, money, attempt, 16 * o + MX_FAILED);
    }
    if (object->state == MX_DONE && list->config->takes_back != 0) {
        add(list, MX_MOVE, money, attempt, 16 * o + MX_FAILED);
    }
    for (int state = MX_PENDING; state < MX_OBJECT_COUNT; state++) {
        if ((object->hooks >> state & 1) != 0) {
            add(list, MX_HOOK, money, attempt, 16 * o + state);
        }
    }
}

static void list_attempt(struct list *list, int attempt)
{
    const struct mx_config *config = list->config;
    const struct mx_world *world = list->world;
    const struct mx_attempt *a = &world->attempts[attempt];

    for (int o = 0; o < MX_OBJECTS; o++) {
        list_object(list, attempt, PAY_MONEY_REFUND, o);
        if (config->is_manual != 0) {
            list_object(list, attempt, PAY_MONEY_CAPTURE, o);
        }
    }
    if ((config->console & 1) != 0 && a->refunds[MX_CONSOLE].state == MX_NONE &&
        room_at_psp(config, world, PAY_MONEY_REFUND, attempt) >= console_amount(config)) {
        add(list, MX_MAKE, PAY_MONEY_REFUND, attempt, 0);
    }
    if ((config->console & 2) != 0 && a->captures[MX_CONSOLE].state == MX_NONE &&
        room_at_psp(config, world, PAY_MONEY_CAPTURE, attempt) >= console_amount(config)) {
        add(list, MX_MAKE, PAY_MONEY_CAPTURE, attempt, 0);
    }
    for (int sum = 1; sum <= config->held; sum++) {
        if ((a->sums >> sum & 1) != 0) {
            add(list, MX_SUM_HOOK, PAY_MONEY_REFUND, attempt, sum);
        }
    }
    if (config->sums != 0 && config->queries != 0 && world->slot.is_set == 0) {
        add(list, MX_ASK, PAY_MONEY_REFUND, attempt, 1);
    }
    if ((a->cancels & 2) != 0) {
        add(list, MX_VOID, PAY_MONEY_CAPTURE, attempt, 0);
    }
    if (a->void_told != 0) {
        add(list, MX_VOID_ANSWER, PAY_MONEY_CAPTURE, attempt, 0);
    }
    if (a->cancels != 0 && a->status == PAY_ATTEMPT_AUTHORIZED) {
        add(list, MX_CANCEL_DUE, PAY_MONEY_CAPTURE, attempt, 0);
    }
}

static void list_dispute(struct list *list)
{
    const struct mx_dispute *d = &list->world->dispute;

    if (list->config->disputes == 0) {
        return;
    }
    if (d->opened == 0) {
        add(list, MX_DISPUTE, 0, 0, 1);
        return;
    }
    if (d->taken == 0) {
        add(list, MX_DISPUTE, 0, 0, 2);
    } else if (d->given_back == 0) {
        add(list, MX_DISPUTE, 0, 0, 3);
    }
    if (d->truth == 0) {
        add(list, MX_DISPUTE, 0, 0, 4);
        add(list, MX_DISPUTE, 0, 0, 5);
    }
    for (int what = 1; what <= 5; what++) {
        const bool exists = what == 1 || (what == 2 && d->taken != 0) ||
                            (what == 3 && d->given_back != 0) || d->truth == what;
        if (exists) {
            add(list, MX_DISPUTE_HOOK, 0, 0, what);
        }
    }
}

static void list_control(struct list *list)
{
    const struct mx_world *world = list->world;
    const struct mx_request *request = &world->request;
    static const struct {
        uint8_t bit;
        enum pay_command_type type;
        int outcome;
    } asks[] = {
        {MX_FORCE, PAY_CMD_FORCE_CLOSE_UNKNOWN, 0},   {MX_FORCE, PAY_CMD_FORCE_CLOSE_UNKNOWN, 1},
        {MX_RELEASE, PAY_CMD_RELEASE_RESERVATION, 0}, {MX_CORRECT, PAY_CMD_CORRECT_STATE, 1},
        {MX_CORRECT, PAY_CMD_CORRECT_STATE, 2},
    };

    for (size_t i = 0; i < sizeof asks / sizeof asks[0]; i++) {
        const bool may = (list->config->controls & asks[i].bit) != 0 && request->exists == 0;
        if (may && world->refunds[0].exists != 0) {
            add(list, MX_REQUEST, (int)asks[i].type, 0, asks[i].outcome);
        }
    }
    if (request->exists != 0 && request->status == PAY_REQUEST_PENDING) {
        static const uint8_t words[] = {0, 1, 2, 1 + 4, 2 + 4, 0 + 8, 1 + 8};
        for (size_t i = 0; i < sizeof words; i++) {
            add(list, MX_WORD, 0, 0, words[i]);
        }
        add(list, MX_REQUEST_DUE, 0, 0, 0);
    }
}

size_t mx_step_list(const struct mx_config *config, const struct mx_world *world,
                    struct mx_step steps[MX_STEPS_MAX])
{
    struct list list = {config, world, steps, 0};

    list_commands(&list);
    for (int a = 0; a < config->attempts; a++) {
        list_attempt(&list, a);
    }
    for (int i = 0; i < MX_REFUNDS && world->refunds[i].exists != 0; i++) {
        list_action(&list, PAY_MONEY_REFUND, i);
    }
    for (int i = 0; i < MX_CAPTURES && world->captures[i].exists != 0; i++) {
        list_action(&list, PAY_MONEY_CAPTURE, i);
    }
    if (world->slot.is_set != 0) {
        add(&list, MX_TOLD, world->slot.kind, world->slot.index, 0);
    }
    list_dispute(&list);
    list_control(&list);
    return list.count;
}

/* ---------------------------------------------------------------------------------------- at the
 * PSP */

static void tell(const struct mx_config *config, struct mx_world *world, int attempt, int money,
                 struct mx_object_state *object)
{
    object->hooks |= (uint8_t)(1U << object->state);
    if (config->sums != 0 && money == PAY_MONEY_REFUND && object->state == MX_DONE) {
        const int sum = mx_held(world, PAY_MONEY_REFUND, attempt, false);
        world->attempts[attempt].sums |= (uint8_t)(1U << sum);
    }
}

static void execute(const struct mx_config *config, struct mx_world *world, struct mx_step step)
{
    struct mx_action *action = action_of(world, step);
    struct mx_object_state *object = own_object(world, step);

    action->wire = 0;
    if (step.arg == NOT_NOW) {
        object->answers |= 1;
        for (int n = 0; n < MX_JOBS; n++) {
            object->not_now =
                (action->jobs[n] & MX_GATE_SENDING) != 0 ? (uint8_t)n : object->not_now;
        }
        return;
    }
    const bool is_new = object->state == MX_NONE;
    object->state = step.arg;
    object->amount = action->amount;
    object->answers |= (uint8_t)(1U << step.arg);
    if (is_new && step.arg != MX_REFUSED) {
        tell(config, world, action->attempt, step.money, object);
    }
}

static void move(const struct mx_config *config, struct mx_world *world, struct mx_step step)
{
    struct mx_attempt *a = &world->attempts[step.index];
    struct mx_object_state *object =
        step.money == PAY_MONEY_CAPTURE ? &a->captures[step.arg / 16] : &a->refunds[step.arg / 16];
    object->state = step.arg % 16;
    tell(config, world, step.index, step.money, object);
}

static void make(const struct mx_config *config, struct mx_world *world, struct mx_step step)
{
    struct mx_attempt *a = &world->attempts[step.index];
    struct mx_object_state *object =
        step.money == PAY_MONEY_CAPTURE ? &a->captures[MX_CONSOLE] : &a->refunds[MX_CONSOLE];

    object->state = MX_DONE;
    object->amount = console_amount(config);
    tell(config, world, step.index, step.money, object);
}

static void ask(struct mx_world *world, struct mx_step step)
{
    if (step.arg == 1) {
        world->slot = (struct mx_slot){
            1, 2, step.index, (uint8_t)mx_held(world, PAY_MONEY_REFUND, step.index, false), 1, 0};
        return;
    }
    const struct mx_action *action = action_of(world, step);
    const struct mx_attempt *a = &world->attempts[action->attempt];
    const int o = action->is_named != 0 ? action->object : mx_own_object(action, step.index);
    const struct mx_object_state *object =
        step.money == PAY_MONEY_CAPTURE ? &a->captures[o] : &a->refunds[o];
    const uint8_t seen = object->state == MX_REFUSED ? MX_NONE : object->state;
    const bool is_late = action->is_old != 0 && action->wire == 0;
    world->slot = (struct mx_slot){
        1, step.money, step.index, seen, seen == MX_NONE && is_late ? 1 : 0, (uint8_t)o};
}

static void dispute(struct mx_dispute *d, uint8_t what)
{
    d->opened = 1;
    if (what == 2) {
        d->taken = 1;
    } else if (what == 3) {
        d->given_back = 1;
    } else if (what >= 4) {
        d->truth = what;
    }
}

static void outside(const struct mx_config *config, struct mx_world *world, struct mx_step step)
{
    struct mx_attempt *a = &world->attempts[step.index % MX_ATTEMPTS];
    struct mx_action *action = action_of(world, step);

    switch (step.kind) {
    case MX_PASS:
        action->jobs[step.arg] |= MX_GATE_SENDING;
        action->wire = 1;
        break;
    case MX_FREE:
        for (int n = 0; n < MX_JOBS; n++) { /* The last that was sent. */
            if ((action->jobs[n] & MX_GATE_SENDING) != 0 &&
                (n + 1 == MX_JOBS || (action->jobs[n + 1] & MX_GATE_SENDING) == 0)) {
                action->jobs[n] = (uint8_t)((action->jobs[n] & ~MX_GATE_SENDING) | MX_GATE_AGAIN);
                break;
            }
        }
        action->wire = 0;
        break;
    case MX_EXECUTE:
        execute(config, world, step);
        break;
    case MX_OLD:
        action->is_old = 1;
        action->wire = 0;
        break;
    case MX_MOVE:
        move(config, world, step);
        break;
    case MX_MAKE:
        make(config, world, step);
        break;
    case MX_VOID:
        a->cancels &= 1;
        a->voided = mx_held(world, PAY_MONEY_CAPTURE, step.index, true) == 0;
        a->void_told = a->voided != 0 ? 1 : 2;
        break;
    case MX_DISPUTE:
        dispute(&world->dispute, step.arg);
        break;
    default:
        ask(world, step);
        break;
    }
}

/* --------------------------------------------------------------------------------------------
 * applying */

static bool refund_changed(const struct mx_world *before, const struct mx_world *after)
{
    for (int i = 0; i < MX_REFUNDS; i++) {
        if (before->refunds[i].exists != after->refunds[i].exists ||
            before->refunds[i].status != after->refunds[i].status) {
            return true;
        }
    }
    return false;
}

static bool decide(const struct mx_config *config, struct mx_world *world, struct mx_step step,
                   bool *ret_is_beyond, struct mx_violation *violation)
{
    const struct pay_decide_input *input = mx_input_of(config, world, step);
    const struct mx_world before = *world;

    if (step.kind == MX_CANCEL) {
        world->commands |= 1;
    }
    if (step.kind == MX_TOLD) {
        world->slot = (struct mx_slot){0};
    }
    if (step.kind == MX_WORD && step.arg > 0 && step.arg < 4) { /* What the checks count. */
        world->request.words |= (uint8_t)(1U << (step.arg - 1));
    }
    const struct mx_decided decided = mx_bench_decide(world, input);
    *ret_is_beyond = decided.is_beyond;
    if (world->slot.kind == 2 && refund_changed(&before, world)) {
        world->slot.is_late = 0;
    }
    if (decided.is_beyond) {
        return true;
    }
    return mx_check_decision(config, &before, world, &decided, step, violation);
}

/* What makes no difference any more: the words of an own call about what is over. */
static void settle(struct mx_world *world)
{
    for (int i = 0; i < MX_REFUNDS + MX_CAPTURES; i++) {
        struct mx_action *action =
            i < MX_REFUNDS ? &world->refunds[i] : &world->captures[i - MX_REFUNDS];
        if (action->exists != 0 && !is_open(action)) {
            action->not_founds = 0;
        }
    }
    if (world->slot.is_set != 0 && world->slot.kind != 2 && world->slot.state != MX_NONE) {
        world->slot.is_late = 0;
    }
}

bool mx_step_apply(const struct mx_config *config, struct mx_world *world, struct mx_step step,
                   bool *ret_is_beyond, struct mx_violation *violation)
{
    bool holds = true;

    *ret_is_beyond = false;
    if (step.kind == MX_PASS && !mx_check_send(config, world, step, violation)) {
        return false;
    }
    if (step.kind >= MX_PASS && step.kind <= MX_ASK) {
        outside(config, world, step);
    } else {
        holds = decide(config, world, step, ret_is_beyond, violation);
    }
    settle(world);
    return holds;
}

void mx_world_begin(const struct mx_config *config, struct mx_world *world)
{
    memset(world, 0, sizeof *world);
    world->order = config->is_manual != 0 ? PAY_ORDER_AUTHORIZED : PAY_ORDER_SUCCEEDED;
    world->cases = config->attempts > 1 ? MX_CASE_DUPLICATE : 0;
    for (int i = 0; i < config->attempts; i++) {
        struct mx_attempt *a = &world->attempts[i];
        a->status = config->is_manual != 0 ? PAY_ATTEMPT_AUTHORIZED : PAY_ATTEMPT_SUCCEEDED;
        a->live = i == 0;
        a->authorized = a->holds = config->held;
        a->captured = config->is_manual != 0 ? 0 : config->held;
    }
}

void mx_step_print(struct mx_step step)
{
    static const char *const names[MX_STEP_KIND_COUNT] = {
        [MX_REFUND] = "command REFUND",
        [MX_CAPTURE] = "command CAPTURE",
        [MX_CANCEL] = "command CANCEL",
        [MX_PASS] = "passes the gate",
        [MX_FREE] = "frees the gate",
        [MX_EXECUTE] = "PSP executes",
        [MX_OLD] = "grows old",
        [MX_MOVE] = "PSP moves",
        [MX_MAKE] = "made in console",
        [MX_VOID] = "PSP voids",
        [MX_DISPUTE] = "PSP dispute",
        [MX_ASK] = "asks",
        [MX_SAY] = "our word",
        [MX_ANSWER] = "answer",
        [MX_HOOK] = "callback",
        [MX_SUM_HOOK] = "callback sum",
        [MX_TOLD] = "query answer",
        [MX_VOID_ANSWER] = "cancel answer",
        [MX_DISPUTE_HOOK] = "dispute callback",
        [MX_DUE] = "deadline",
        [MX_CANCEL_DUE] = "cancel again",
        [MX_REQUEST] = "request",
        [MX_WORD] = "word",
        [MX_REQUEST_DUE] = "request expires",
    };
    (void)printf("    %s %s %d arg %d\n", names[step.kind],
                 step.money == PAY_MONEY_CAPTURE ? "capture" : "refund", step.index + 1, step.arg);
}
