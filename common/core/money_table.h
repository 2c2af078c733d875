/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file money_table.h
 * @brief The money table of the state machine: what each event does to a capture or a refund in
 * each state.
 *
 * One static const table for both. docs/STATE_MACHINE.md is printed from it, a test compares it
 * cell by cell with the text of the design. money_rule.c has one function for each note.
 */
#ifndef PAY_CORE_MONEY_TABLE_H
#define PAY_CORE_MONEY_TABLE_H

#include "common/core/cell.h"
#include "common/core/types.h"

/** What a cell adds to its kind. */
enum pay_money_note {
    PAY_MONEY_NOTE_NONE,
    PAY_MONEY_NOTE_SENT_AGAIN, /**< ᵃ by deadline until the action's end, then withdrawn. */
    PAY_MONEY_NOTE_NOT_FOUND,  /**< as ² of the attempt table. */
    PAY_MONEY_NOTE_FITS,       /**< Only if it fits; else a case, and no new reservation. */
    PAY_MONEY_NOTE_STALE,      /**< Ignored below QUERY, needs reconciliation at QUERY. */
    PAY_MONEY_NOTE_COUNT
};

struct pay_money_cell {
    enum pay_cell_kind kind;
    enum pay_money_status next; /**< MOVE only. */
    enum pay_money_note note;
};

/** @return the cell; borrowed, static. Both arguments must be values of their enums. */
const struct pay_money_cell *pay_money_table_cell(enum pay_money_status now,
                                                  enum pay_money_event event);

/** @brief The cell as it stands in the document, e.g. "→CREATED ᵃ", "as ²".
 *  @param dst 128 bytes, UTF-8. */
void pay_money_table_print(const struct pay_money_cell *cell, char dst[128]);

/** @return the least and the most evidence that an event may have. */
enum pay_evidence pay_money_least_evidence(enum pay_money_event event);
enum pay_evidence pay_money_most_evidence(enum pay_money_event event);

#endif /* PAY_CORE_MONEY_TABLE_H */
