/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/money_table.h"

#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

/* clang-format off */
#define TO(state)         { PAY_CELL_MOVE, PAY_MONEY_##state, PAY_MONEY_NOTE_NONE }
#define TO_IF(state, why) { PAY_CELL_MOVE, PAY_MONEY_##state, PAY_MONEY_NOTE_##why }
#define IGN               { PAY_CELL_IGNORE, PAY_MONEY_CREATED, PAY_MONEY_NOTE_NONE }
#define IGN_IF(why)       { PAY_CELL_IGNORE, PAY_MONEY_CREATED, PAY_MONEY_NOTE_##why }
#define REJ               { PAY_CELL_REJECT, PAY_MONEY_CREATED, PAY_MONEY_NOTE_NONE }
#define NOTE(why)         { PAY_CELL_NOTE, PAY_MONEY_CREATED, PAY_MONEY_NOTE_##why }

static const struct pay_money_cell table[PAY_MONEY_STATUS_COUNT][PAY_ME_COUNT] = {
    [PAY_MONEY_CREATED] = {
        [PAY_ME_SUBMITTED] = TO(PROCESSING),            [PAY_ME_NOT_SENT] = IGN_IF(SENT_AGAIN),
        [PAY_ME_PROCESSING] = TO(PROCESSING),           [PAY_ME_SUCCEEDED] = TO(SUCCEEDED),
        [PAY_ME_FAILED] = TO(FAILED),                   [PAY_ME_UNKNOWN] = TO(UNKNOWN),
        [PAY_ME_NOT_FOUND] = IGN,                       [PAY_ME_REVERSED] = REJ,
        [PAY_ME_WITHDRAWN] = TO(CANCELED),
    },
    [PAY_MONEY_PROCESSING] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = TO_IF(CREATED, SENT_AGAIN),
        [PAY_ME_PROCESSING] = IGN,                      [PAY_ME_SUCCEEDED] = TO(SUCCEEDED),
        [PAY_ME_FAILED] = TO(FAILED),                   [PAY_ME_UNKNOWN] = TO(UNKNOWN),
        [PAY_ME_NOT_FOUND] = NOTE(NOT_FOUND),           [PAY_ME_REVERSED] = TO(REVERSED),
        [PAY_ME_WITHDRAWN] = IGN,
    },
    [PAY_MONEY_UNKNOWN] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = TO_IF(CREATED, SENT_AGAIN),
        [PAY_ME_PROCESSING] = TO(PROCESSING),           [PAY_ME_SUCCEEDED] = TO(SUCCEEDED),
        [PAY_ME_FAILED] = TO(FAILED),                   [PAY_ME_UNKNOWN] = IGN,
        [PAY_ME_NOT_FOUND] = NOTE(NOT_FOUND),           [PAY_ME_REVERSED] = TO(REVERSED),
        [PAY_ME_WITHDRAWN] = IGN,
    },
    [PAY_MONEY_SUCCEEDED] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = REJ,
        [PAY_ME_PROCESSING] = IGN,                      [PAY_ME_SUCCEEDED] = IGN,
        [PAY_ME_FAILED] = TO(REVERSED),                 [PAY_ME_UNKNOWN] = IGN,
        [PAY_ME_NOT_FOUND] = IGN,                       [PAY_ME_REVERSED] = TO(REVERSED),
        [PAY_ME_WITHDRAWN] = IGN,
    },
    [PAY_MONEY_FAILED] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = IGN,
        [PAY_ME_PROCESSING] = IGN,                      [PAY_ME_SUCCEEDED] = TO_IF(SUCCEEDED, FITS),
        [PAY_ME_FAILED] = IGN,                          [PAY_ME_UNKNOWN] = IGN,
        [PAY_ME_NOT_FOUND] = IGN,                       [PAY_ME_REVERSED] = REJ,
        [PAY_ME_WITHDRAWN] = IGN,
    },
    [PAY_MONEY_CANCELED] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = IGN,
        [PAY_ME_PROCESSING] = IGN,                      [PAY_ME_SUCCEEDED] = TO_IF(SUCCEEDED, FITS),
        [PAY_ME_FAILED] = IGN,                          [PAY_ME_UNKNOWN] = IGN,
        [PAY_ME_NOT_FOUND] = IGN,                       [PAY_ME_REVERSED] = REJ,
        [PAY_ME_WITHDRAWN] = IGN,
    },
    [PAY_MONEY_REVERSED] = {
        [PAY_ME_SUBMITTED] = IGN,                       [PAY_ME_NOT_SENT] = IGN,
        [PAY_ME_PROCESSING] = IGN,                      [PAY_ME_SUCCEEDED] = IGN_IF(STALE),
        [PAY_ME_FAILED] = IGN,                          [PAY_ME_UNKNOWN] = IGN,
        [PAY_ME_NOT_FOUND] = IGN,                       [PAY_ME_REVERSED] = IGN,
        [PAY_ME_WITHDRAWN] = IGN,
    },
};

/* Weaker than least or stronger than most: rejected. */
static const struct {
    enum pay_evidence least, most;
} evidence[PAY_ME_COUNT] = {
    [PAY_ME_SUBMITTED]  = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_ME_NOT_SENT]   = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_ME_PROCESSING] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_ME_SUCCEEDED]  = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_ME_FAILED]     = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_ME_UNKNOWN]    = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_ME_NOT_FOUND]  = {PAY_EVIDENCE_QUERY,         PAY_EVIDENCE_QUERY},
    [PAY_ME_REVERSED]   = {PAY_EVIDENCE_WEBHOOK,       PAY_EVIDENCE_CONTROLLED},
    [PAY_ME_WITHDRAWN]  = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
};
/* clang-format on */

const struct pay_money_cell *pay_money_table_cell(enum pay_money_status now,
                                                  enum pay_money_event event)
{
    PAY_ASSERT((size_t)now < PAY_MONEY_STATUS_COUNT && (size_t)event < PAY_ME_COUNT);
    const struct pay_money_cell *cell = &table[now][event];
    PAY_ASSERT(cell->kind != PAY_CELL_UNSET);
    return cell;
}

void pay_money_table_print(const struct pay_money_cell *cell, char dst[128])
{
    static const char *const notes[PAY_MONEY_NOTE_COUNT] = {
        "",
        " ᵃ",
        "as ²",
        " if it fits, else N (OVER_REFUND) and new reservations on the attempt are blocked",
        " below QUERY, N at QUERY",
    };
    const char *const parts[] = {
        cell->kind == PAY_CELL_MOVE ? pay_money_status_name(cell->next) : NULL, notes[cell->note]};

    pay_cell_print(cell->kind, parts, sizeof parts / sizeof parts[0], dst, 128);
}

enum pay_evidence pay_money_least_evidence(enum pay_money_event event)
{
    PAY_ASSERT((size_t)event < PAY_ME_COUNT);
    return evidence[event].least;
}

enum pay_evidence pay_money_most_evidence(enum pay_money_event event)
{
    PAY_ASSERT((size_t)event < PAY_ME_COUNT);
    return evidence[event].most;
}
