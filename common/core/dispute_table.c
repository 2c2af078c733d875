/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/dispute_table.h"

#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

/* clang-format off */
#define TO(state) { PAY_CELL_MOVE, PAY_DISPUTE_##state }
#define IGN       { PAY_CELL_IGNORE, PAY_DISPUTE_OPENED }
#define REC       { PAY_CELL_RECONCILE, PAY_DISPUTE_OPENED }
#define FUNDS     { PAY_CELL_STAY, PAY_DISPUTE_OPENED }

static const struct pay_dispute_cell table[PAY_DISPUTE_ROW_COUNT][PAY_DE_COUNT] = {
    [PAY_DISPUTE_NONE] = {
        [PAY_DE_OPENED] = TO(OPENED),             [PAY_DE_EVIDENCE_DUE] = TO(EVIDENCE_DUE),
        [PAY_DE_UNDER_REVIEW] = TO(UNDER_REVIEW), [PAY_DE_WON] = TO(WON),
        [PAY_DE_LOST] = TO(LOST),                 [PAY_DE_CLOSED] = TO(CLOSED),
        [PAY_DE_FUNDS_WITHDRAWN] = TO(OPENED),    [PAY_DE_FUNDS_REINSTATED] = TO(OPENED),
    },
    [PAY_DISPUTE_OPENED] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = TO(EVIDENCE_DUE),
        [PAY_DE_UNDER_REVIEW] = TO(UNDER_REVIEW), [PAY_DE_WON] = TO(WON),
        [PAY_DE_LOST] = TO(LOST),                 [PAY_DE_CLOSED] = TO(CLOSED),
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
    [PAY_DISPUTE_EVIDENCE_DUE] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = IGN,
        [PAY_DE_UNDER_REVIEW] = TO(UNDER_REVIEW), [PAY_DE_WON] = TO(WON),
        [PAY_DE_LOST] = TO(LOST),                 [PAY_DE_CLOSED] = TO(CLOSED),
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
    [PAY_DISPUTE_UNDER_REVIEW] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = IGN,
        [PAY_DE_UNDER_REVIEW] = IGN,              [PAY_DE_WON] = TO(WON),
        [PAY_DE_LOST] = TO(LOST),                 [PAY_DE_CLOSED] = TO(CLOSED),
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
    [PAY_DISPUTE_WON] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = IGN,
        [PAY_DE_UNDER_REVIEW] = IGN,              [PAY_DE_WON] = IGN,
        [PAY_DE_LOST] = REC,                      [PAY_DE_CLOSED] = IGN,
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
    [PAY_DISPUTE_LOST] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = IGN,
        [PAY_DE_UNDER_REVIEW] = IGN,              [PAY_DE_WON] = REC,
        [PAY_DE_LOST] = IGN,                      [PAY_DE_CLOSED] = IGN,
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
    [PAY_DISPUTE_CLOSED] = {
        [PAY_DE_OPENED] = IGN,                    [PAY_DE_EVIDENCE_DUE] = IGN,
        [PAY_DE_UNDER_REVIEW] = IGN,              [PAY_DE_WON] = TO(WON),
        [PAY_DE_LOST] = TO(LOST),                 [PAY_DE_CLOSED] = IGN,
        [PAY_DE_FUNDS_WITHDRAWN] = FUNDS,         [PAY_DE_FUNDS_REINSTATED] = FUNDS,
    },
};
/* clang-format on */

static const char *const event_names[PAY_DE_COUNT] = {
    [PAY_DE_OPENED] = "opened",
    [PAY_DE_EVIDENCE_DUE] = "evidence due",
    [PAY_DE_UNDER_REVIEW] = "under review",
    [PAY_DE_WON] = "won",
    [PAY_DE_LOST] = "lost",
    [PAY_DE_CLOSED] = "closed",
    [PAY_DE_FUNDS_WITHDRAWN] = "funds withdrawn",
    [PAY_DE_FUNDS_REINSTATED] = "funds reinstated",
};

const struct pay_dispute_cell *pay_dispute_table_cell(int row, enum pay_dispute_event event)
{
    PAY_ASSERT(row >= 0 && row < PAY_DISPUTE_ROW_COUNT && (size_t)event < PAY_DE_COUNT);
    const struct pay_dispute_cell *cell = &table[row][event];
    PAY_ASSERT(cell->kind != PAY_CELL_UNSET);
    return cell;
}

void pay_dispute_table_print(const struct pay_dispute_cell *cell, char dst[64])
{
    const char *const next =
        cell->kind == PAY_CELL_MOVE ? pay_dispute_status_name(cell->next) : NULL;

    pay_cell_print(cell->kind, &next, 1, dst, 64);
}

const char *pay_dispute_row_name(int row)
{
    return row == PAY_DISPUTE_NONE ? "not known"
                                   : pay_dispute_status_name((enum pay_dispute_status)row);
}

const char *pay_dispute_event_name(enum pay_dispute_event event)
{
    return (size_t)event < PAY_DE_COUNT ? event_names[event] : "?";
}

bool pay_dispute_column(enum pay_event_type type, enum pay_dispute_event *ret_event)
{
    static const signed char columns[PAY_EV_COUNT] = {
        [PAY_EV_DISPUTE_OPENED] = PAY_DE_OPENED + 1,
        [PAY_EV_DISPUTE_EVIDENCE_DUE] = PAY_DE_EVIDENCE_DUE + 1,
        [PAY_EV_DISPUTE_UNDER_REVIEW] = PAY_DE_UNDER_REVIEW + 1,
        [PAY_EV_DISPUTE_WON] = PAY_DE_WON + 1,
        [PAY_EV_DISPUTE_LOST] = PAY_DE_LOST + 1,
        [PAY_EV_DISPUTE_CLOSED] = PAY_DE_CLOSED + 1,
        [PAY_EV_DISPUTE_FUNDS_WITHDRAWN] = PAY_DE_FUNDS_WITHDRAWN + 1,
        [PAY_EV_DISPUTE_FUNDS_REINSTATED] = PAY_DE_FUNDS_REINSTATED + 1,
    };
    if ((size_t)type >= PAY_EV_COUNT || columns[type] == 0) {
        return false;
    }
    *ret_event = (enum pay_dispute_event)(columns[type] - 1);
    return true;
}
