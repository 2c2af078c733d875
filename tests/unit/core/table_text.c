/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/core/table_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
/* cmocka.h needs the three above. */
#include <cmocka.h>
#include <string.h>

#define LINE_SIZE 4096

static void read_cell(char dst[TABLE_CELL_SIZE], const char *from, size_t len)
{
    while (len > 0 && from[0] == ' ') {
        from++;
        len--;
    }
    while (len > 0 && from[len - 1] == ' ') {
        len--;
    }
    assert_true(len < TABLE_CELL_SIZE);
    memcpy(dst, from, len);
    dst[len] = 0;
}

static size_t read_line(char cells[TABLE_COLUMNS_MAX][TABLE_CELL_SIZE], const char *line)
{
    size_t count = 0;
    const char *from = line + 1;

    for (const char *bar = strchr(from, '|'); bar != NULL; bar = strchr(from, '|')) {
        assert_true(count < TABLE_COLUMNS_MAX);
        read_cell(cells[count++], from, (size_t)(bar - from));
        from = bar + 1;
    }
    return count;
}

void table_text_read(struct table_text *table, const char *first)
{
    static char line[LINE_SIZE];
    FILE *file = fopen(PAY_TEST_DATA "/unit/core/attempt_table.txt", "re");
    int inside = 0;

    memset(table, 0, sizeof *table);
    if (file == NULL) {
        fail_msg("no attempt_table.txt");
        return;
    }
    while (fgets(line, sizeof line, file) != NULL) {
        inside = line[0] == '|' && (inside || strstr(line, first) == line + 2);
        if (!inside || strstr(line, "| --- ") == line) {
            continue;
        }
        assert_true(table->row_count < TABLE_ROWS_MAX);
        const size_t count = read_line(table->cells[table->row_count++], line);
        assert_true(table->column_count == 0 || table->column_count == count);
        table->column_count = count;
    }
    assert_int_equal(fclose(file), 0);
    assert_true(table->row_count > 1);
}
