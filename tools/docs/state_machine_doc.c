/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints docs/STATE_MACHINE.md from the tables that decide. Usage:
 *
 *   payfact-state-machine-doc > docs/STATE_MACHINE.md
 *   payfact-state-machine-doc --check docs/STATE_MACHINE.md     fails when the file is not current
 */
#include "tools/docs/document.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/core/attempt.h"
#include "common/core/attempt_table.h"
#include "common/core/guard.h"
#include "common/core/order_table.h"
#include "common/core/types.h"

void put(struct document *doc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int len = vsnprintf(doc->text + doc->len, DOCUMENT_MAX - doc->len, format, args);
    va_end(args);
    if (len < 0 || (size_t)len >= DOCUMENT_MAX - doc->len) {
        doc->is_cut = true;
        return;
    }
    doc->len += (size_t)len;
}

static const char *const event_meanings[PAY_AE_COUNT] = {
    [PAY_AE_SUB] = "submitted",
    [PAY_AE_NSN] = "certainly not sent",
    [PAY_AE_PRC] = "processing: the customer is done, the PSP works",
    [PAY_AE_ACT] = "customer action required; also: the buyer has not paid yet",
    [PAY_AE_APR] = "approved by the customer, our confirmation is needed",
    [PAY_AE_AUT] = "authorized",
    [PAY_AE_SUC] = "succeeded",
    [PAY_AE_DEC] = "declined, but the PSP's object can still be paid",
    [PAY_AE_FAI] = "failed, explicitly and for good",
    [PAY_AE_CAN] = "canceled at the PSP",
    [PAY_AE_UNK] = "result unknown: only from a money call, never from a failed query",
    [PAY_AE_NFD] = "query: no such transaction",
    [PAY_AE_AEX] = "action deadline passed",
    [PAY_AE_XPA] = "authorization expired",
    [PAY_AE_REV] = "taken back after success",
};

/* The number is the note's; the function that carries it out stands behind it. */
static const struct {
    const char *where;
    const char *text;
} notes[PAY_NOTE_COUNT] = {
    [1] = {"rule.c", "Only when the job's gate row is closed unsent, after the retry budget for "
                     "NOT_SENT. The decision closes the gate; a gate that was passed meanwhile "
                     "makes it a lost race."},
    [2] =
        {"rule.c",
         "→FAILED (`PSP_NOT_FOUND`) only if all hold: no provider reference was ever bound (else "
         "N, or ignored when asked before it was bound); no action was handed to the customer; "
         "the query was by request number, not a search; as many not-founds in a row as the PSP "
         "needs, each from a query *asked* after T = the later of `not_after` and the last send, "
         "a replay being a send, + call budget + the PSP's longest processing + grace. One asked "
         "earlier counts for nothing, a new send starts the count again, and the gates are closed "
         "in the same decision. A next attempt after it is automatic only where the route says "
         "`failover_on_not_found`."},
    [3] =
        {"decide_deadline.c, withdraw.c, admit.c",
         "Closes nothing by itself: the effect is a CANCEL job and a new deadline. CANCELED comes "
         "from CAN, or, where the PSP cannot cancel, from a query *asked* after the expiry that "
         "our create gave to the PSP, plus grace, that says unpaid or not found. CAN from a "
         "CANCEL or QUERY counts only if it was made after the attempt was known to exist; else "
         "it is NFD. CANCEL jobs are made only then, before it QUERY. Neither cancel nor expiry: "
         "the attempt stays blocking and becomes a case. Entering REQUIRES_ACTION always makes a "
         "new deadline, at once if the action's end has passed."},
    [4] = {"rule.c", "With WEBHOOK evidence or higher, or as the first send's own answer."},
    [5] = {"rule.c", "Only if `result_certainty` is below WEBHOOK."},
    [6] =
        {"rule.c, order.c",
         "Late money: WEBHOOK or higher (weaker: N and a query), exact amount. The attempt and "
         "its amounts take the fact; every other live attempt is withdrawn; while a money case is "
         "open no attempt may be created. For AUT the effect is a void job and a case."},
    [7] =
        {"confirm.c",
         "Effect: one CONFIRM job per action handed to the customer (`.CONFIRM.n`), each with its "
         "own gate row, however many times its approval is reported; none under an intent, a "
         "money case, a final order or another SUCCEEDED: CANCEL instead. A CONFIRM that was not "
         "sent is sent again, after pauses as ᵃ's of captures, until the attempt's end, then "
         "withdrawn. Where only our CONFIRM "
         "moves money, closing its gate unsent, or never making it, is CAN."},
    [8] = {"decide_event.c",
           "The attempt stays blocking. With a customer page open it stays payable until its "
           "deadline (a DEC or APR decided after it: CANCEL); without one, or when the route would "
           "go on, the effect is a CANCEL job, and only CAN closes it."},
    [9] = {"rule.c",
           "CAN as the answer to our own cancel, or WEBHOOK or higher (weaker: ignored, "
           "and a query); with a capture reserved: N. Our own clock alone closes nothing: "
           "a void job and a query."},
    [10] = {"rule.c", "Below QUERY evidence: ignored (stale) with one verifying query, no case; "
                      "QUERY or higher: N."},
    [11] = {"rule.c", "With captured < authorized: ignored, the uncaptured rest is released."},
    [12] = {"rule.c", "The state stays; `withdrawn` += amount, `CaptureReversed`, a case."},
};

static void put_head(struct document *doc)
{
    put(doc,
        "# The state machine\n\n"
        "<!-- Generated by payfact-state-machine-doc from the tables that decide. Do not edit: run "
        "it again. -->\n\n"
        "UNKNOWN is not FAILED. A failed attempt is not a failed payment. Paid is not settled, and "
        "a refund's success is not a payment's failure.\n\n"
        "`pay_decide(snapshot, input)` is pure: no I/O, no clock, no allocation. It gives a "
        "verdict "
        "(`APPLY`, `IGNORE`, `REJECT`, `NEEDS_RECONCILIATION`), a reason, the changed rows, and "
        "effects: facts to publish, jobs for the PSP, deadlines.\n\n");
}

static void put_events(struct document *doc)
{
    put(doc, "## Events of an attempt, and the evidence they need\n\n"
             "Weaker evidence than the least, or stronger than the most, is rejected.\n\n"
             "| event | meaning | least | most |\n| --- | --- | --- | --- |\n");
    for (int e = 0; e < PAY_AE_COUNT; e++) {
        const enum pay_attempt_event event = (enum pay_attempt_event)e;
        put(doc, "| %s | %s | %s | %s |\n", pay_attempt_event_name(event), event_meanings[e],
            pay_evidence_name(pay_attempt_least_evidence(event)),
            pay_evidence_name(pay_attempt_most_evidence(event)));
    }
}

static void put_attempt_table(struct document *doc)
{
    put(doc, "\n## Attempt\n\n`→X` apply; `·` ignore; `R` reject; `N` needs reconciliation.\n\n"
             "| now \\ event |");
    for (int e = 0; e < PAY_AE_COUNT; e++) {
        put(doc, " %s |", pay_attempt_event_name((enum pay_attempt_event)e));
    }
    put(doc, "\n| --- |");
    for (int e = 0; e < PAY_AE_COUNT; e++) {
        put(doc, " --- |");
    }
    put(doc, "\n");
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        put(doc, "| %s |", pay_attempt_status_name((enum pay_attempt_status)s));
        for (int e = 0; e < PAY_AE_COUNT; e++) {
            char cell[64];
            pay_attempt_table_print(
                pay_attempt_table_cell((enum pay_attempt_status)s, (enum pay_attempt_event)e),
                cell);
            put(doc, " %s |", cell);
        }
        put(doc, "\n");
    }
    put(doc, "\n");
    for (int n = 1; n < PAY_NOTE_COUNT; n++) {
        put(doc, "%d. %s (`common/core`: %s)\n", n, notes[n].text, notes[n].where);
    }
}

static void put_order_table(struct document *doc)
{
    put(doc, "\n## Order\n\nA final order never moves below CONTROLLED; only amounts, cases and "
             "events follow.\n\n| attempt becomes | order becomes |\n| --- | --- |\n");
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        put(doc, "| %s | %s |\n", pay_attempt_status_name((enum pay_attempt_status)s),
            pay_order_table_rule((enum pay_attempt_status)s)->text);
    }
    put(doc, "\n| order becomes | fact published |\n| --- | --- |\n");
    for (int s = 0; s < PAY_ORDER_STATUS_COUNT; s++) {
        put(doc, "| %s | %s |\n", pay_order_status_name((enum pay_order_status)s),
            pay_fact_type_name(pay_order_fact((enum pay_order_status)s)));
    }
}

static void put_waits_of(struct document *doc, enum pay_attempt_status status)
{
    const char *separator = "";

    put(doc, "| %s | ", pay_attempt_status_name(status));
    for (int k = 0; k < PAY_DEADLINE_KIND_COUNT; k++) {
        if (pay_attempt_waits(status, (enum pay_deadline_kind)k)) {
            put(doc, "%s%s", separator, pay_deadline_kind_name((enum pay_deadline_kind)k));
            separator = ", ";
        }
    }
    put(doc, "%s |\n", separator[0] == 0 ? "none" : "");
}

static void put_waits(struct document *doc)
{
    put(doc,
        "\n## What waits for an attempt in each state\n\n"
        "While an attempt is being withdrawn, ACTION waits in every open state: it repeats the "
        "CANCEL. An open CONFIRM keeps SEND. An order that is not final has ORDER_EXPIRY.\n\n"
        "| state | deadlines |\n| --- | --- |\n");
    for (int s = 0; s < PAY_ATTEMPT_STATUS_COUNT; s++) {
        put_waits_of(doc, (enum pay_attempt_status)s);
    }
}

static void put_guards(struct document *doc)
{
    put(doc, "\n## Guards\n\nThe explorer switches each off and must then find a broken "
             "invariant.\n\n| guard | rule |\n| --- | --- |\n");
    for (int g = 0; g < PAY_GUARD_COUNT; g++) {
        put(doc, "| %s | %s |\n", pay_guard_name((enum pay_guard)g),
            pay_guard_text((enum pay_guard)g));
    }
}

static void put_lists(struct document *doc)
{
    put(doc, "\n## Cases\n\n| case | money: blocks new attempts |\n| --- | --- |\n");
    for (int c = 0; c < PAY_CASE_KIND_COUNT; c++) {
        put(doc, "| %s | %s |\n", pay_case_kind_name((enum pay_case_kind)c),
            pay_case_is_money((enum pay_case_kind)c) ? "yes" : "no");
    }
    put(doc, "\n## Facts\n\n");
    for (int f = 0; f < PAY_FACT_UNRECOGNIZED; f++) {
        put(doc, "%s%s", f == 0 ? "" : ", ", pay_fact_type_name((enum pay_fact_type)f));
    }
    put(doc, ".\n");
}

static int check(const struct document *doc, const char *path)
{
    static char current[DOCUMENT_MAX];
    FILE *file = fopen(path, "re");

    if (file == NULL) {
        (void)fprintf(stderr, "cannot read '%s'\n", path);
        return 1;
    }
    const size_t len = fread(current, 1, sizeof current, file);
    (void)fclose(file); /* Only read. */
    if (len != doc->len || memcmp(current, doc->text, len) != 0) {
        (void)fprintf(stderr, "'%s' is not current, run payfact-state-machine-doc > %s\n", path,
                      path);
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct document doc;

    put_head(&doc);
    put_events(&doc);
    put_attempt_table(&doc);
    put_order_table(&doc);
    put_waits(&doc);
    put_money(&doc);
    put_guards(&doc);
    put_lists(&doc);
    if (doc.is_cut) {
        (void)fputs("the document is larger than its buffer\n", stderr);
        return 2;
    }
    if (argc == 3 && strcmp(argv[1], "--check") == 0) {
        return check(&doc, argv[2]);
    }
    if (argc != 1) {
        (void)fputs("usage: payfact-state-machine-doc [--check FILE]\n", stderr);
        return 2;
    }
    return fwrite(doc.text, 1, doc.len, stdout) == doc.len ? 0 : 1;
}
