/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file dispute_table.h
 * @brief The dispute table of the state machine: what each event does to a dispute in each state.
 *
 * A dispute goes forward only, OPENED → EVIDENCE_DUE → UNDER_REVIEW → WON | LOST | CLOSED, and
 * never touches the payment's state. What moves money is the funds, not the outcome.
 */
#ifndef PAY_CORE_DISPUTE_TABLE_H
#define PAY_CORE_DISPUTE_TABLE_H

#include "common/core/cell.h"
#include "common/core/types.h"

/** The row of a dispute that is not known yet; the others are enum pay_dispute_status. */
#define PAY_DISPUTE_NONE PAY_DISPUTE_STATUS_COUNT
#define PAY_DISPUTE_ROW_COUNT (PAY_DISPUTE_STATUS_COUNT + 1)

/** Columns of the dispute table. */
enum pay_dispute_event {
    PAY_DE_OPENED,
    PAY_DE_EVIDENCE_DUE,
    PAY_DE_UNDER_REVIEW,
    PAY_DE_WON,
    PAY_DE_LOST,
    PAY_DE_CLOSED,
    PAY_DE_FUNDS_WITHDRAWN,
    PAY_DE_FUNDS_REINSTATED,
    PAY_DE_COUNT
};

struct pay_dispute_cell {
    enum pay_cell_kind kind;      /**< MOVE, STAY (the funds move), IGNORE or RECONCILE. */
    enum pay_dispute_status next; /**< MOVE only. */
};

/** @param row a status, or PAY_DISPUTE_NONE. @return the cell; borrowed, static. */
const struct pay_dispute_cell *pay_dispute_table_cell(int row, enum pay_dispute_event event);
/** @brief The cell as it stands in the document. @param dst 64 bytes, UTF-8. */
void pay_dispute_table_print(const struct pay_dispute_cell *cell, char dst[64]);
/** @return name of a row or a column; static. */
const char *pay_dispute_row_name(int row);
const char *pay_dispute_event_name(enum pay_dispute_event event);
/** @return the column of an event's type; false: not of a dispute. */
bool pay_dispute_column(enum pay_event_type type, enum pay_dispute_event *ret_event);

#endif /* PAY_CORE_DISPUTE_TABLE_H */
