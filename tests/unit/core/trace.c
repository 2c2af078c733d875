/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/trace.h"

#define LL(x_) ((long long)(x_))
#define TEXT(s_) (int)(s_).len, (s_).ptr == NULL ? "" : (s_).ptr

static const char *or_dash(const char *text)
{
    return text == NULL ? "-" : text;
}

static void print_amounts(FILE *out, const struct pay_amounts *a)
{
    (void)fprintf(out, " %lld/%lld/%lld/%lld/%lld/%lld", LL(a->authorized), LL(a->capture_reserved),
                  LL(a->captured), LL(a->refund_reserved), LL(a->refunded), LL(a->withdrawn));
}

static void print_fact(FILE *out, const struct pay_fact *f)
{
    (void)fprintf(out, "  fact %s %s #%lld %s A%d %s>%s order %s", pay_fact_type_name(f->type),
                  f->event_id, LL(f->sequence), f->aggregate_id, f->attempt_index,
                  or_dash(f->previous_status), or_dash(f->status),
                  f->has_order_status ? pay_order_status_name(f->order_status) : "-");
    if (f->has_amount) {
        (void)fprintf(out, " %lld %s", LL(f->amount.amount_minor), f->amount.currency);
    }
    if (f->has_totals) {
        print_amounts(out, &f->totals);
    }
    (void)fprintf(out, " %s %s '%.*s' %s '%.*s' %d case %d dispute %d funds %d '%s'\n",
                  or_dash(f->reason_code), pay_failure_class_name(f->failure_class),
                  TEXT(f->failure_code), pay_evidence_name(f->evidence),
                  TEXT(f->provider_reference), f->has_action, f->case_index, f->dispute_index,
                  (int)f->funds, f->result_id);
}

static void print_job(FILE *out, const struct pay_job_effect *j)
{
    (void)fprintf(out, "  job %s %s A%d #%d %d try %d until %lld expires %lld %s '%s'\n", j->job_id,
                  pay_job_kind_name(j->kind), j->attempt_index, j->action_index, j->number,
                  j->try_no, LL(j->not_after_us), LL(j->expires_at_us), or_dash(j->reason_code),
                  j->about_job_id);
}

static void print_effects(FILE *out, const struct pay_decision *d)
{
    for (size_t i = 0; i < d->effect_count; i++) {
        const struct pay_effect *e = &d->effects[i];
        if (e->kind == PAY_EFFECT_FACT) {
            print_fact(out, &e->as.fact);
        } else if (e->kind == PAY_EFFECT_JOB) {
            print_job(out, &e->as.job);
        } else {
            const bool sets = e->kind == PAY_EFFECT_DEADLINE_SET;
            (void)fprintf(out, "  %s %s %s %lld\n", sets ? "wait" : "clear",
                          pay_deadline_kind_name(e->as.deadline.kind), e->as.deadline.aggregate_id,
                          sets ? LL(e->as.deadline.due_at_us) : LL(e->as.deadline.set_before_us));
        }
    }
}

static void print_history(FILE *out, const struct pay_decision *d)
{
    for (size_t i = 0; i < d->history_count; i++) {
        const struct pay_history_row *h = &d->history[i];
        (void)fprintf(out, "  row %s %s %s>%s %s %s %s '%.*s' %lld %d%s%s\n",
                      pay_aggregate_name(h->aggregate), h->aggregate_id, or_dash(h->from_status),
                      or_dash(h->to_status), pay_verdict_name(h->verdict), or_dash(h->event_name),
                      or_dash(h->reason_code), TEXT(h->provider_reference),
                      h->has_amount ? LL(h->amount.amount_minor) : -1, h->fact_effect,
                      h->outside ? " outside" : "", h->is_controlled ? " controlled" : "");
    }
}

static void print_order(FILE *out, const struct pay_order *o)
{
    (void)fprintf(out,
                  "  order %d %d %s %s %s %lld %s %s %s '%s' %s '%s' %d %lld %lld %d %d #%lld"
                  " %d/%d/%d/%d paid %d %s %lld\n",
                  (int)o->change, o->exists, o->payment_id, o->merchant_id, o->merchant_order_no,
                  LL(o->amount.amount_minor), o->amount.currency,
                  pay_capture_mode_name(o->capture_mode), pay_order_status_name(o->status),
                  o->reason_code, pay_intent_name(o->intent), o->intent_command_id,
                  o->intent_route_no, LL(o->failover_until_us), LL(o->expires_at_us),
                  o->retry_until_expiry, o->expiry_asked, LL(o->event_sequence), o->attempt_count,
                  o->capture_count, o->refund_count, o->dispute_count, o->paid_attempt_no,
                  o->created_by, LL(o->created_at_us));
}

static void print_attempt(FILE *out, const struct pay_attempt *a)
{
    (void)fprintf(out, "  attempt %d%d %s %d route %d %s/%s/%s %lld %s %s %s %s '%s'",
                  (int)a->change, a->amounts_changed, a->attempt_id, a->attempt_no, a->route_no,
                  a->psp, a->psp_account, a->method, LL(a->amount.amount_minor), a->amount.currency,
                  pay_attempt_status_name(a->status), a->live ? "live" : "",
                  pay_evidence_name(a->result_certainty), a->last_accepted_event_id);
    (void)fprintf(out, " %d %d %lld %lld %lld %lld %d/%d/%d %lld %lld %lld %s %s '%s' %lld",
                  a->query_count, a->not_found_count, LL(a->not_found_from_us), LL(a->known_at_us),
                  LL(a->unknown_since_us), LL(a->submitted_at_us), a->action_no, a->confirm_no,
                  a->cancel_no, LL(a->action_expires_at_us), LL(a->psp_expires_at_us),
                  LL(a->authorization_expires_at_us), pay_cancel_cause_name(a->cancel_cause),
                  pay_failure_class_name(a->failure_class), a->failure_code, LL(a->created_at_us));
    print_amounts(out, &a->amounts);
    (void)fprintf(out, " sum %lld\n", LL(a->refund_sum_minor));
}

static void print_action(FILE *out, const struct pay_money_action *a)
{
    (void)fprintf(out, "  action %d %s %d A%d '%s' %lld %s %d %s %s '%s' %s '%s' '%s'",
                  (int)a->change, a->action_id, a->number, a->attempt_index, a->idempotency_key,
                  LL(a->amount.amount_minor), a->amount.currency, a->is_final,
                  pay_money_status_name(a->status), pay_evidence_name(a->result_certainty),
                  a->provider_reference, pay_origin_name(a->origin), a->reason_code,
                  a->last_accepted_event_id);
    (void)fprintf(out, " %d %d %lld %lld %lld %lld %s '%s' %lld\n", a->query_count,
                  a->not_found_count, LL(a->not_found_from_us), LL(a->unknown_since_us),
                  LL(a->retry_at_us), LL(a->give_up_at_us),
                  pay_failure_class_name(a->failure_class), a->failure_code, LL(a->created_at_us));
}

static void print_dispute(FILE *out, const struct pay_dispute *d)
{
    (void)fprintf(out, "  dispute %d %s %d A%d '%s' %lld %s %s %s %d %lld '%s' %lld %s '%s' %lld\n",
                  (int)d->change, d->dispute_id, d->number, d->attempt_index, d->provider_reference,
                  LL(d->amount.amount_minor), d->amount.currency,
                  pay_dispute_status_name(d->status), pay_dispute_funds_name(d->funds),
                  d->is_inquiry, LL(d->withdrawn_minor), d->reason_code, LL(d->evidence_due_at_us),
                  pay_evidence_name(d->result_certainty), d->last_accepted_event_id,
                  LL(d->created_at_us));
}

static void print_request(FILE *out, const struct pay_approval_request *r)
{
    (void)fprintf(out,
                  "  request %d %s %02x%02x %s %s %lld %lld %lld %s %s %lld '%s' '%s' %d %lld"
                  " '%s' '%s'\n",
                  (int)r->change, r->request_id, r->sha256[0], r->sha256[31], r->requested_by,
                  pay_request_status_name(r->status), LL(r->expires_at_us), LL(r->created_at_us),
                  LL(r->decided_at_us), pay_command_type_name(r->type), r->aggregate_id,
                  LL(r->expected_version), r->from_status, r->to_status, r->has_amount,
                  LL(r->amount.amount_minor), r->provider_reference, r->reason_code);
}

static void print_control(FILE *out, const struct pay_snapshot *snap)
{
    for (size_t i = 0; i < snap->request_count; i++) {
        print_request(out, &snap->requests[i]);
    }
    for (size_t i = 0; i < snap->approval_count; i++) {
        const struct pay_approval *a = &snap->approvals[i];
        (void)fprintf(out, "  word %d %d %s %d %s %lld\n", (int)a->change, a->request_index,
                      a->principal, a->approves, a->command_id, LL(a->decided_at_us));
    }
    for (size_t i = 0; i < snap->case_count; i++) {
        const struct pay_case *c = &snap->cases[i];
        (void)fprintf(out, "  case %d %s %s %s %d %d %lld '%s' '%s'\n", (int)c->change, c->case_id,
                      pay_case_kind_name(c->kind), c->aggregate_id, c->open, c->number,
                      LL(c->proposed_refund_minor), c->resolved_by, c->resolution_code);
    }
    (void)fprintf(out, "  day %d %lld+%lld of %lld\n", (int)snap->refund_day.change,
                  LL(snap->refund_day.amount_minor), LL(snap->refund_day.added_minor),
                  LL(snap->refund_day.limit_minor));
}

static void print_rows(FILE *out, const struct pay_snapshot *snap)
{
    print_order(out, &snap->order);
    for (size_t i = 0; i < snap->attempt_count; i++) {
        print_attempt(out, &snap->attempts[i]);
    }
    for (size_t i = 0; i < snap->capture_count; i++) {
        print_action(out, &snap->captures[i]);
    }
    for (size_t i = 0; i < snap->refund_count; i++) {
        print_action(out, &snap->refunds[i]);
    }
    for (size_t i = 0; i < snap->dispute_count; i++) {
        print_dispute(out, &snap->disputes[i]);
    }
    for (size_t i = 0; i < snap->gate_count; i++) {
        const struct pay_gate *g = &snap->gates[i];
        (void)fprintf(out, "  gate %d %s %s %s %lld %lld %d %lld %lld %d\n", (int)g->change,
                      g->job_id, g->action_id, pay_job_kind_name(g->kind), LL(g->not_after_us),
                      LL(g->sending_at_us), g->sends, LL(g->last_send_at_us), LL(g->closed_at_us),
                      g->finished);
    }
    for (size_t i = 0; i < snap->reference_count; i++) {
        const struct pay_bound_reference *r = &snap->references[i];
        (void)fprintf(out, "  bound %d A%d %s %s %lld\n", (int)r->change, r->attempt_index,
                      pay_reference_kind_name(r->kind), r->reference, LL(r->bound_at_us));
    }
    for (size_t i = 0; i < snap->route_count; i++) {
        const struct pay_route *r = &snap->routes[i];
        (void)fprintf(out, "  route %s/%s/%s\n", r->psp, r->psp_account, r->method);
    }
}

void trace_print(FILE *out, const struct world *w)
{
    const struct pay_decide_input *in = &w->input;

    (void)fprintf(out, "@%lld %s %s %.*s\n", LL(in->now_us - WORLD_START),
                  in->kind == PAY_INPUT_EVENT      ? pay_event_type_name(w->event.type)
                  : in->kind == PAY_INPUT_DEADLINE ? pay_deadline_kind_name(in->deadline.kind)
                                                   : pay_command_type_name(w->command.type),
                  in->kind == PAY_INPUT_EVENT ? pay_evidence_name(in->evidence) : "",
                  TEXT(in->cause));
    (void)fprintf(out, "  %s %s%s%s%s\n", pay_verdict_name(w->out.verdict), w->out.reason_code,
                  w->out.security ? " security" : "", w->out.orphan ? " orphan" : "",
                  w->out.foreign ? " foreign" : "");
    print_effects(out, &w->out);
    print_history(out, &w->out);
    print_rows(out, &w->snap);
    print_control(out, &w->snap);
}
