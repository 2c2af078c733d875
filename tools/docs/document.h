/* SPDX-License-Identifier: Apache-2.0 */
/** @file document.h @brief A text that grows up to a limit; printed only when it is whole. */
#ifndef PAY_TOOLS_DOCS_DOCUMENT_H
#define PAY_TOOLS_DOCS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/attr.h"

#define DOCUMENT_MAX ((size_t)256 * 1024)

struct document {
    char text[DOCUMENT_MAX];
    size_t len;
    bool is_cut; /**< It did not fit: nothing is printed. */
};

void put(struct document *doc, const char *format, ...) PAY_PRINTF(2, 3);

/** Captures, refunds, disputes, and what two people may decide. */
void put_money(struct document *doc);

#endif /* PAY_TOOLS_DOCS_DOCUMENT_H */
