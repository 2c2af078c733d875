/* SPDX-License-Identifier: Apache-2.0 */
/* The part of docs/STATE_MACHINE.md about captures, refunds, disputes and approvals. */
#include "tools/docs/document.h"

#include "common/core/dispute_table.h"
#include "common/core/money_action.h"
#include "common/core/money_table.h"

static const char *const meanings[PAY_ME_COUNT] = {
    [PAY_ME_SUBMITTED] = "our call has left",
    [PAY_ME_NOT_SENT] = "certainly not sent",
    [PAY_ME_PROCESSING] = "the PSP works on it",
    [PAY_ME_SUCCEEDED] = "done, with exactly this amount",
    [PAY_ME_FAILED] = "refused for good, or failed later",
    [PAY_ME_UNKNOWN] = "result unknown: only from a money call",
    [PAY_ME_NOT_FOUND] = "query: no such capture or refund",
    [PAY_ME_REVERSED] = "taken back",
    [PAY_ME_WITHDRAWN] = "a decision of ours: the gate rows prove that nothing left",
};

static void put_money_events(struct document *doc)
{
    put(doc, "\n## Captures and refunds\n\n"
             "One table for both. Weaker evidence than the least, or stronger than the most, is "
             "rejected; so is another amount than the action's.\n\n"
             "| event | meaning | least | most |\n| --- | --- | --- | --- |\n");
    for (int e = 0; e < PAY_ME_COUNT; e++) {
        const enum pay_money_event event = (enum pay_money_event)e;
        put(doc, "| %s | %s | %s | %s |\n", pay_money_event_name(event), meanings[e],
            pay_evidence_name(pay_money_least_evidence(event)),
            pay_evidence_name(pay_money_most_evidence(event)));
    }
}

static void put_money_table(struct document *doc)
{
    put(doc, "\n| now \\ event |");
    for (int e = 0; e < PAY_ME_COUNT; e++) {
        put(doc, " %s |", pay_money_event_name((enum pay_money_event)e));
    }
    put(doc, "\n| --- |");
    for (int e = 0; e < PAY_ME_COUNT; e++) {
        put(doc, " --- |");
    }
    put(doc, "\n");
    for (int s = 0; s < PAY_MONEY_STATUS_COUNT; s++) {
        put(doc, "| %s |", pay_money_status_name((enum pay_money_status)s));
        for (int e = 0; e < PAY_ME_COUNT; e++) {
            char cell[128];
            pay_money_table_print(
                pay_money_table_cell((enum pay_money_status)s, (enum pay_money_event)e), cell);
            put(doc, " %s |", cell);
        }
        put(doc, "\n");
    }
    put(doc,
        "\nᵃ Only while no job of the action may have left; sent again under its next job id "
        "(`.REFUND.2`) by its SEND deadline until its end, then *withdrawn* (`money_rule.c, "
        "money_deadline.c`). The first time at once when its window is over; then after a pause "
        "that begins with the PSP's first query's and doubles up to four hours (`pause.c`).\n\n"
        "² As the attempt's: by our number, never once the PSP has named it, as many in a row as "
        "the PSP needs, each asked after every send can have ended, and none while it waits to be "
        "repeated; "
        "releases the reservation "
        "(`money_rule.c`).\n\n"
        "→REVERSED needs WEBHOOK, confirmed by one query where the PSP has one; until then the "
        "event is ignored and the query made. A reversed refund lowers `refunded`; a reversed "
        "capture raises `withdrawn` and is a case; before success was seen the reservation is "
        "released. A success of what had FAILED or was CANCELED is booked at once if it fits and "
        "asked about.\n\n"
        "In manual mode the first capture's success makes the attempt SUCCEEDED. A success "
        "without a name settles the only open capture of exactly that amount; one that a settled "
        "capture, or their sum, explains only asks. What the PSP names and we do not know is "
        "*of origin PSP*, through the same reservation; what does not fit is a case.\n\n"
        "Without a column: RETRY_SAME_NUMBER (stays PROCESSING with its reservation, repeated "
        "under its own number: at Retry-After, which is followed to a day, and not before our own "
        "pause, which doubles with each send up to four hours, from the first query's where the "
        "PSP said "
        "a time, else from the "
        "account's `money_action_retry_s`), REFUND_SUM (asks about every open refund; only with "
        "none open, and "
        "where the PSP is asked only in an answer that was asked for after the last of them "
        "changed, "
        "does the difference become one refund of origin PSP), QUERY_FAILED (counted).\n");
}

static void put_waits_of(struct document *doc, enum pay_money_status status)
{
    const char *separator = "";

    put(doc, "| %s | ", pay_money_status_name(status));
    for (int k = 0; k < PAY_DEADLINE_KIND_COUNT; k++) {
        if (pay_money_waits(status, (enum pay_deadline_kind)k)) {
            put(doc, "%s%s", separator, pay_deadline_kind_name((enum pay_deadline_kind)k));
            separator = ", ";
        }
    }
    put(doc, "%s |\n", separator[0] == 0 ? "none" : "");
}

static void put_money_waits(struct document *doc)
{
    put(doc, "\n| capture or refund | deadlines |\n| --- | --- |\n");
    for (int s = 0; s < PAY_MONEY_STATUS_COUNT; s++) {
        put_waits_of(doc, (enum pay_money_status)s);
    }
    put(doc, "\nA refund that waits for approval is CREATED without a job: its request has an "
             "APPROVAL deadline.\n");
}

static void put_dispute_table(struct document *doc)
{
    put(doc, "\n## Disputes\n\nA dispute never touches the payment's state. `apply`: the funds "
             "move, each way once, whichever report comes first; an event of another column may "
             "say so too. Needs WEBHOOK.\n\n| now \\ event |");
    for (int e = 0; e < PAY_DE_COUNT; e++) {
        put(doc, " %s |", pay_dispute_event_name((enum pay_dispute_event)e));
    }
    put(doc, "\n| --- |");
    for (int e = 0; e < PAY_DE_COUNT; e++) {
        put(doc, " --- |");
    }
    put(doc, "\n");
    for (int row = 0; row < PAY_DISPUTE_ROW_COUNT; row++) {
        put(doc, "| %s |", pay_dispute_row_name(row));
        for (int e = 0; e < PAY_DE_COUNT; e++) {
            char cell[64];
            pay_dispute_table_print(pay_dispute_table_cell(row, (enum pay_dispute_event)e), cell);
            put(doc, " %s |", cell);
        }
        put(doc, "\n");
    }
}

static void put_words(struct document *doc, const char *title, const char *(*at)(size_t))
{
    put(doc, "\n%s: ", title);
    for (size_t n = 0; at(n) != NULL; n++) {
        put(doc, "%s`%s`", n == 0 ? "" : ", ", at(n));
    }
    put(doc, ".\n");
}

static void put_control(struct document *doc)
{
    put(doc, "\n## Two people\n\n");
    for (int t = 0; t < PAY_CMD_COUNT; t++) {
        if (pay_command_is_controlled((enum pay_command_type)t)) {
            put(doc, "%s, ", pay_command_type_name((enum pay_command_type)t));
        }
    }
    put(doc,
        "RESOLVE_CASE of a money case, and REQUEST_REFUND beyond the merchant's thresholds "
        "wait for %d approvals by different principals, neither the requester. Each names the "
        "request and the SHA-256 of its bytes, and counts once per principal. What was asked "
        "for is done on the second, if its row has the expected version (an order: the status "
        "seen) still; else it is STALE. A query that brought nothing is counted and leaves the "
        "version. After it no attempt begins by itself.\n",
        PAY_APPROVALS_NEEDED);
    put_words(doc, "Reason codes", pay_control_reason_at);
    put_words(doc, "Resolution codes", pay_resolution_at);
}

void put_money(struct document *doc)
{
    put_money_events(doc);
    put_money_table(doc);
    put_money_waits(doc);
    put_dispute_table(doc);
    put_control(doc);
}
