/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cell.h
 * @brief What the cells of all tables of the state machine have in common.
 */
#ifndef PAY_CORE_CELL_H
#define PAY_CORE_CELL_H

#include <stddef.h>

enum pay_cell_kind {
    PAY_CELL_UNSET,     /**< A forgotten row is all zero: caught by an assertion and by the test. */
    PAY_CELL_MOVE,      /**< Apply: the aggregate becomes @c next. */
    PAY_CELL_STAY,      /**< Apply: amounts or cases move, the state stays. */
    PAY_CELL_IGNORE,    /**< Old, or known already. */
    PAY_CELL_REJECT,    /**< Cannot be. */
    PAY_CELL_RECONCILE, /**< Contradicts a recorded fact: a case. */
    PAY_CELL_NOTE       /**< Only the footnote decides. */
};

/** @brief A cell as it stands in the document: its kind's sign, then the parts.
 *  @param parts NULL is nothing. @param dst cap bytes, UTF-8; it must fit. */
void pay_cell_print(enum pay_cell_kind kind, const char *const *parts, size_t count, char *dst,
                    size_t cap);

#endif /* PAY_CORE_CELL_H */
