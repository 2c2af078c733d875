/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/attempt_table.h"

#include <string.h>

#include "common/base/assert.h"

#include "common/base/banned.h"

#define TO(state, ...)                      \
    {                                       \
        PAY_CELL_MOVE, PAY_ATTEMPT_##state, \
        {                                   \
            __VA_ARGS__                     \
        }                                   \
    }
#define IGN(...)                              \
    {                                         \
        PAY_CELL_IGNORE, PAY_ATTEMPT_CREATED, \
        {                                     \
            __VA_ARGS__                       \
        }                                     \
    }
#define REJ(...)                              \
    {                                         \
        PAY_CELL_REJECT, PAY_ATTEMPT_CREATED, \
        {                                     \
            __VA_ARGS__                       \
        }                                     \
    }
#define REC(...)                                 \
    {                                            \
        PAY_CELL_RECONCILE, PAY_ATTEMPT_CREATED, \
        {                                        \
            __VA_ARGS__                          \
        }                                        \
    }
#define STAY(...)                           \
    {                                       \
        PAY_CELL_STAY, PAY_ATTEMPT_CREATED, \
        {                                   \
            __VA_ARGS__                     \
        }                                   \
    }
#define NOTE(...)                           \
    {                                       \
        PAY_CELL_NOTE, PAY_ATTEMPT_CREATED, \
        {                                   \
            __VA_ARGS__                     \
        }                                   \
    }

/* clang-format off */
static const struct pay_attempt_cell table[PAY_ATTEMPT_STATUS_COUNT][PAY_AE_COUNT] = {
    [PAY_ATTEMPT_CREATED] = {
        [PAY_AE_SUB] = TO(SUBMITTED, 0),       [PAY_AE_NSN] = TO(FAILED, 1),
        [PAY_AE_PRC] = TO(PROCESSING, 0),      [PAY_AE_ACT] = TO(REQUIRES_ACTION, 0),
        [PAY_AE_APR] = TO(PROCESSING, 7),      [PAY_AE_AUT] = TO(AUTHORIZED, 0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = TO(PROCESSING, 8),
        [PAY_AE_FAI] = TO(FAILED, 0),          [PAY_AE_CAN] = TO(CANCELED, 0),
        [PAY_AE_UNK] = TO(UNKNOWN, 0),         [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_SUBMITTED] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = TO(FAILED, 1),
        [PAY_AE_PRC] = TO(PROCESSING, 0),      [PAY_AE_ACT] = TO(REQUIRES_ACTION, 0),
        [PAY_AE_APR] = TO(PROCESSING, 7),      [PAY_AE_AUT] = TO(AUTHORIZED, 0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = TO(PROCESSING, 8),
        [PAY_AE_FAI] = TO(FAILED, 0),          [PAY_AE_CAN] = TO(CANCELED, 0),
        [PAY_AE_UNK] = TO(UNKNOWN, 0),         [PAY_AE_NFD] = NOTE(2),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_PROCESSING] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = REJ(0),
        [PAY_AE_PRC] = IGN(0),                 [PAY_AE_ACT] = TO(REQUIRES_ACTION, 0),
        [PAY_AE_APR] = IGN(7),                 [PAY_AE_AUT] = TO(AUTHORIZED, 0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = IGN(8),
        [PAY_AE_FAI] = TO(FAILED, 0),          [PAY_AE_CAN] = TO(CANCELED, 0),
        [PAY_AE_UNK] = TO(UNKNOWN, 5),         [PAY_AE_NFD] = NOTE(2),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_REQUIRES_ACTION] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = REJ(0),
        [PAY_AE_PRC] = TO(PROCESSING, 0),      [PAY_AE_ACT] = IGN(0),
        [PAY_AE_APR] = TO(PROCESSING, 7),      [PAY_AE_AUT] = TO(AUTHORIZED, 0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = IGN(8),
        [PAY_AE_FAI] = TO(FAILED, 0),          [PAY_AE_CAN] = TO(CANCELED, 0),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = NOTE(3),                [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_AUTHORIZED] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = REJ(0),
        [PAY_AE_PRC] = IGN(0),                 [PAY_AE_ACT] = IGN(0),
        [PAY_AE_APR] = IGN(0),                 [PAY_AE_AUT] = IGN(0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = IGN(0),
        [PAY_AE_FAI] = REC(0),                 [PAY_AE_CAN] = TO(CANCELED, 9),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = TO(CANCELED, 9),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_UNKNOWN] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = TO(FAILED, 1),
        [PAY_AE_PRC] = TO(PROCESSING, 4),      [PAY_AE_ACT] = TO(REQUIRES_ACTION, 4),
        [PAY_AE_APR] = TO(PROCESSING, 7),      [PAY_AE_AUT] = TO(AUTHORIZED, 0),
        [PAY_AE_SUC] = TO(SUCCEEDED, 0),       [PAY_AE_DEC] = TO(PROCESSING, 8),
        [PAY_AE_FAI] = TO(FAILED, 0),          [PAY_AE_CAN] = TO(CANCELED, 0),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = NOTE(2),
        [PAY_AE_AEX] = NOTE(3),                [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_SUCCEEDED] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = REJ(0),
        [PAY_AE_PRC] = IGN(0),                 [PAY_AE_ACT] = IGN(0),
        [PAY_AE_APR] = IGN(0),                 [PAY_AE_AUT] = IGN(0),
        [PAY_AE_SUC] = IGN(0),                 [PAY_AE_DEC] = IGN(0),
        [PAY_AE_FAI] = REC(10),                [PAY_AE_CAN] = REC(10, 11),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(11),
        [PAY_AE_REV] = STAY(12),
    },
    [PAY_ATTEMPT_FAILED] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = IGN(0),
        [PAY_AE_PRC] = IGN(0),                 [PAY_AE_ACT] = IGN(0),
        [PAY_AE_APR] = IGN(0),                 [PAY_AE_AUT] = REC(6),
        [PAY_AE_SUC] = TO(SUCCEEDED, 6),       [PAY_AE_DEC] = IGN(0),
        [PAY_AE_FAI] = IGN(0),                 [PAY_AE_CAN] = IGN(0),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
    [PAY_ATTEMPT_CANCELED] = {
        [PAY_AE_SUB] = IGN(0),                 [PAY_AE_NSN] = IGN(0),
        [PAY_AE_PRC] = IGN(0),                 [PAY_AE_ACT] = IGN(0),
        [PAY_AE_APR] = IGN(0),                 [PAY_AE_AUT] = REC(6),
        [PAY_AE_SUC] = TO(SUCCEEDED, 6),       [PAY_AE_DEC] = IGN(0),
        [PAY_AE_FAI] = IGN(0),                 [PAY_AE_CAN] = IGN(0),
        [PAY_AE_UNK] = IGN(0),                 [PAY_AE_NFD] = IGN(0),
        [PAY_AE_AEX] = IGN(0),                 [PAY_AE_XPA] = IGN(0),
        [PAY_AE_REV] = REJ(0),
    },
};

/* Weaker than least or stronger than most: rejected. */
static const struct {
    enum pay_evidence least, most;
} evidence[PAY_AE_COUNT] = {
    [PAY_AE_SUB] = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_AE_NSN] = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_AE_PRC] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_ACT] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_APR] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_AUT] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_SUC] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_DEC] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_FAI] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_CAN] = {PAY_EVIDENCE_SYNC_RESPONSE, PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_UNK] = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_AE_NFD] = {PAY_EVIDENCE_QUERY,         PAY_EVIDENCE_QUERY},
    [PAY_AE_AEX] = {PAY_EVIDENCE_LOCAL,         PAY_EVIDENCE_LOCAL},
    [PAY_AE_XPA] = {PAY_EVIDENCE_WEBHOOK,       PAY_EVIDENCE_CONTROLLED},
    [PAY_AE_REV] = {PAY_EVIDENCE_WEBHOOK,       PAY_EVIDENCE_CONTROLLED},
};
/* clang-format on */

const struct pay_attempt_cell *pay_attempt_table_cell(enum pay_attempt_status now,
                                                      enum pay_attempt_event event)
{
    PAY_ASSERT((size_t)now < PAY_ATTEMPT_STATUS_COUNT && (size_t)event < PAY_AE_COUNT);
    const struct pay_attempt_cell *cell = &table[now][event];
    PAY_ASSERT(cell->kind != PAY_CELL_UNSET);
    return cell;
}

void pay_attempt_table_print(const struct pay_attempt_cell *cell, char dst[64])
{
    static const char *const notes[PAY_NOTE_COUNT] = {"",  "¹", "²", "³",  "⁴",  "⁵", "⁶",
                                                      "⁷", "⁸", "⁹", "¹⁰", "¹¹", "¹²"};
    const char *const parts[] = {
        cell->kind == PAY_CELL_MOVE ? pay_attempt_status_name(cell->next) : NULL,
        notes[cell->notes[0]], cell->notes[1] != 0 ? " " : NULL, notes[cell->notes[1]]};

    pay_cell_print(cell->kind, parts, sizeof parts / sizeof parts[0], dst, 64);
}

enum pay_evidence pay_attempt_least_evidence(enum pay_attempt_event event)
{
    PAY_ASSERT((size_t)event < PAY_AE_COUNT);
    return evidence[event].least;
}

enum pay_evidence pay_attempt_most_evidence(enum pay_attempt_event event)
{
    PAY_ASSERT((size_t)event < PAY_AE_COUNT);
    return evidence[event].most;
}
