/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file plan.h
 * @brief Internal: a writer's schema matched, by names, with the C struct: what reader and writer
 * walk. Made once per schema, read only afterwards.
 */
#ifndef PAY_CONTRACTS_PLAN_H
#define PAY_CONTRACTS_PLAN_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/contracts/binding.h"

#include <avro.h>

#define PAY_PLAN_DEPTH_MAX                                               \
    24 /**< Nesting of a schema, unions counted. Data nests no deeper: a \
          schema that contains itself is refused. */
#define PAY_PLAN_NODES_MAX 4096

struct pay_node {
    avro_type_t type;            /**< Never AVRO_LINK. */
    const struct pay_bind *bind; /**< Borrowed; NULL: the C struct has no such field, skip it. */
    struct pay_node *children;   /**< RECORD: fields in the writer's order; UNION: branches; ARRAY,
                                    MAP:   the item. */
    size_t child_count;
    int null_branch;  /**< UNION: index, -1: none. */
    int value_branch; /**< UNION: the first other branch. */
    size_t fixed_size;
    size_t min_bytes; /**< The least that a value takes. */
    int symbol_count; /**< ENUM: of the writer. */
    int reader_symbol_count;
    int *to_reader;              /**< ENUM: the current schema's index of each writer's symbol. */
    int *from_reader;            /**< ENUM: and back; -1: the writer has none for it. */
    const char **reader_symbols; /**< SYMBOL: borrowed from the current schema. */
    const struct pay_bind **missing; /**< RECORD: fields that the writer's schema lacks. */
    size_t missing_count;
};

struct pay_plan {
    const struct pay_node *root;
    bool writable; /**< Every field that is not in the struct can be left null or empty. */
};

/**
 * @param arena    owns the plan. @param reader the current schema of the record; it must outlive
 *                 the plan. @param writer only read here; the same as reader for the current one.
 * @return PAY_REJECT when data of @p writer cannot be read into the struct.
 */
PAY_MUST_CHECK enum pay_status pay_plan_make(struct pay_arena *arena,
                                             const struct pay_bind_record *record,
                                             avro_schema_t writer, avro_schema_t reader,
                                             struct pay_plan *ret_plan, struct pay_err *err);

#endif /* PAY_CONTRACTS_PLAN_H */
