/* SPDX-License-Identifier: Apache-2.0 */
/** @file table_text.h @brief Reads attempt_table.txt: the tables as the requirement states them. */
#ifndef PAY_TESTS_CORE_TABLE_TEXT_H
#define PAY_TESTS_CORE_TABLE_TEXT_H

#include <stddef.h>

#define TABLE_ROWS_MAX 12
#define TABLE_COLUMNS_MAX 17
#define TABLE_CELL_SIZE 512

struct table_text {
    char cells[TABLE_ROWS_MAX][TABLE_COLUMNS_MAX][TABLE_CELL_SIZE];
    size_t row_count; /**< With the head, without the line of dashes. */
    size_t column_count;
};

/** Fails the test when the file has no table whose first cell is @p first. */
void table_text_read(struct table_text *table, const char *first);

#endif /* PAY_TESTS_CORE_TABLE_TEXT_H */
