/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file attempt_table.h
 * @brief The attempt table of the state machine: what each event does to an attempt in each state.
 *
 * One static const table. docs/STATE_MACHINE.md is printed from it, a test compares it cell by cell
 * with the text of the design. A note's number is the footnote's number; rule.c has one function
 * for each note that changes a cell's ruling.
 */
#ifndef PAY_CORE_ATTEMPT_TABLE_H
#define PAY_CORE_ATTEMPT_TABLE_H

#include "common/core/cell.h"
#include "common/core/types.h"

#define PAY_CELL_NOTES_MAX 2
#define PAY_NOTE_COUNT 13 /**< Notes 1 to 12; 0 is none. */

struct pay_attempt_cell {
    enum pay_cell_kind kind;
    enum pay_attempt_status next;            /**< MOVE only. */
    unsigned char notes[PAY_CELL_NOTES_MAX]; /**< Footnotes, 0 = none. */
};

/** @return the cell; borrowed, static. Both arguments must be values of their enums. */
const struct pay_attempt_cell *pay_attempt_table_cell(enum pay_attempt_status now,
                                                      enum pay_attempt_event event);

/** @brief The cell as it stands in the document, e.g. "→PROCESSING⁷", "·", "N¹⁰ ¹¹".
 *  @param dst 64 bytes, UTF-8. */
void pay_attempt_table_print(const struct pay_attempt_cell *cell, char dst[64]);

/** @return the least evidence that an event needs. */
enum pay_evidence pay_attempt_least_evidence(enum pay_attempt_event event);
/** @return the most evidence that an event may have: LOCAL for our own words, QUERY for NFD. */
enum pay_evidence pay_attempt_most_evidence(enum pay_attempt_event event);

#endif /* PAY_CORE_ATTEMPT_TABLE_H */
