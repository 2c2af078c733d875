/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/property/explorer/trace.h"

static const char *object_name(uint8_t object)
{
    static const char *const names[XP_OBJECT_COUNT] = {
        [XP_NONE] = "nothing",    [XP_REFUSED] = "refused",   [XP_PROCESSING] = "processing",
        [XP_ACTION] = "unpaid",   [XP_DECLINED] = "declined", [XP_APPROVED] = "approved",
        [XP_CHARGED] = "CHARGED", [XP_CANCELED] = "canceled", [XP_FAILED] = "failed",
    };
    return object < XP_OBJECT_COUNT ? names[object] : "?";
}

static const char *command_name(uint8_t command)
{
    switch (command) {
    case XP_CANCEL:
        return "CANCEL_PAYMENT";
    case XP_CHANGE:
        return "CHANGE_METHOD to route 1";
    case XP_CHANGE_SAME:
        return "CHANGE_METHOD to route 0";
    case XP_START_NEXT:
        return "START_ATTEMPT";
    case XP_START_FIRST:
        return "START_ATTEMPT on route 0";
    default:
        return "CONTINUE_ATTEMPT";
    }
}

static void print_step(struct xp_step step)
{
    static const char *const words[XP_STEP_KIND_COUNT] = {
        [XP_STEP_CREATE] = "CREATE_PAYMENT",
        [XP_STEP_TICK] = "time passes",
        [XP_STEP_GATE] = "a sender passes the gate",
        [XP_STEP_FREE] = "the request certainly did not leave, the gate is given back",
        [XP_STEP_SECOND] = "the PSP makes a second object, charged",
        [XP_STEP_EXPIRE] = "the PSP's object expires",
        [XP_STEP_REVERSE] = "the PSP takes the charge back",
        [XP_STEP_REVERSE_CALLBACK] = "delivered: callback reversed",
        [XP_STEP_CONFIRM_GATE] = "a sender passes the CONFIRM's gate",
        [XP_STEP_CONFIRM_FREE] = "the CONFIRM certainly did not leave",
        [XP_STEP_REPLAY] = "a replay passes the gate",
        [XP_STEP_CANCEL_ASK] = "the PSP executes the cancel",
        [XP_STEP_SUBMITTED] = "delivered: SUB",
        [XP_STEP_NOT_SENT] = "delivered: NSN",
        [XP_STEP_UNKNOWN] = "delivered: UNK",
        [XP_STEP_ANSWER] = "delivered: the answer to the create",
        [XP_STEP_REFUSED_ANSWER] = "delivered: the answer to the create, a definite no",
        [XP_STEP_REPLAY_ANSWER] = "delivered: the answer to the replay",
        [XP_STEP_CONFIRM_ANSWER] = "delivered: the answer to the CONFIRM",
        [XP_STEP_CANCEL_ANSWER] = "delivered: the answer to the cancel",
        [XP_STEP_SECOND_CALLBACK] = "delivered: callback of the second object",
        [XP_STEP_QUERY_ANSWER] = "delivered: the answer to the query",
        [XP_STEP_ORDER_EXPIRY] = "deadline ORDER_EXPIRY",
    };

    (void)printf("A%02d ", step.attempt + 1);
    switch (step.kind) {
    case XP_STEP_COMMAND:
        (void)printf("%s", command_name(step.arg));
        break;
    case XP_STEP_EXECUTE:
        (void)printf("the PSP executes the request: %s%s", object_name(step.arg % 16),
                     step.arg >= 16 ? ", another amount" : "");
        break;
    case XP_STEP_MOVE:
        (void)printf("at the PSP: %s", object_name(step.arg));
        break;
    case XP_STEP_CONFIRM_EXECUTE:
        (void)printf("the PSP executes CONFIRM.%d: %s", step.arg / 16, object_name(step.arg % 16));
        break;
    case XP_STEP_ASK:
        (void)printf("the PSP answers a query%s", step.arg != 0 ? ", not seeing it yet" : "");
        break;
    case XP_STEP_CALLBACK:
        (void)printf("delivered: callback %s", object_name(step.arg));
        break;
    case XP_STEP_DEADLINE:
        (void)printf("deadline %s%s",
                     pay_deadline_kind_name((enum pay_deadline_kind)(step.arg % 16)),
                     step.arg >= 16 ? ", the ninth cancel" : "");
        break;
    default:
        (void)printf("%s", words[step.kind]);
        break;
    }
}

static void print_gate(const char *name, const struct xp_gate *gate)
{
    if ((gate->flags & XP_GATE_EXISTS) == 0) {
        return;
    }
    (void)printf(" %s:%s%s%s", name, (gate->flags & XP_GATE_SENDING) != 0 ? "passed" : "unsent",
                 (gate->flags & XP_GATE_CLOSED) != 0 ? "+closed" : "",
                 (gate->flags & XP_GATE_REPLAYED) != 0 ? "+replayed" : "");
}

static void print_attempt(const struct xp_attempt *a, int number)
{
    (void)printf(" | A%02d %s%s cause=%s", number,
                 pay_attempt_status_name((enum pay_attempt_status)a->status),
                 a->live != 0 ? "" : " (not live)",
                 pay_cancel_cause_name((enum pay_cancel_cause)a->cancel_cause));
    print_gate("gate", &a->submit);
    print_gate("c1", &a->confirm[0]);
    print_gate("c2", &a->confirm[1]);
    (void)printf(" psp=%s%s%s", object_name(a->object), a->is_short != 0 ? "(short)" : "",
                 a->wire_until != 0 ? "+request on the way" : "");
    for (int kind = 0; kind < XP_DUE_KINDS; kind++) {
        if (a->due[kind] != 0) {
            (void)printf(" %s@%+.1f", pay_deadline_kind_name((enum pay_deadline_kind)kind),
                         (double)(a->due[kind] - xp_time_in(0)) / 2);
        }
    }
}

static void print_world(const struct xp_world *after, struct xp_step step,
                        const struct xp_result *result)
{
    print_step(step);
    if (result->verdict != NULL) {
        (void)printf(" → %s %s", result->verdict, result->reason_code);
    }
    (void)printf("\n        order %s intent=%s",
                 pay_order_status_name((enum pay_order_status)after->order),
                 pay_intent_name((enum pay_intent)after->intent));
    for (int i = 0; i < after->attempt_count && i < XP_ATTEMPTS_MAX; i++) {
        print_attempt(&after->attempts[i], i + 1);
    }
    for (int kind = 0; kind < PAY_CASE_KIND_COUNT; kind++) {
        if ((xp_cases(after) >> kind & 1) != 0) {
            (void)printf(" | case %s", pay_case_kind_name((enum pay_case_kind)kind));
        }
    }
    (void)printf("\n");
}

void xp_trace_print(const struct xp_config *config, const struct xp_trace *trace,
                    const struct xp_violation *violation)
{
    struct xp_world world = {0};
    struct xp_result result = {0};
    struct xp_violation again = {0};

    (void)printf("VIOLATED %s: %s\nworld %s, %zu steps:\n", xp_invariant_name(violation->invariant),
                 violation->text, config->name, trace->count);
    xp_bench_open(config);
    for (size_t i = 0; i < trace->count; i++) {
        (void)printf("%4zu  ", i + 1);
        (void)xp_step_apply(config, &world, trace->steps[i], &result, &again);
        print_world(&world, trace->steps[i], &result);
    }
}
