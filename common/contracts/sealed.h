/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file sealed.h
 * @brief A field that only the holders of the evidence keyring can read. Value only; sealing and
 * opening is crypto's.
 */
#ifndef PAY_CONTRACTS_SEALED_H
#define PAY_CONTRACTS_SEALED_H

#include "common/base/str.h"

#define PAY_SEALED_BOUND_TO_MAX 600

/** AES-256-GCM: nonce (12 bytes), ciphertext, tag (16 bytes). Absent: ciphertext.ptr is NULL. */
struct pay_sealed {
    struct pay_str key_id; /**< Id of the data key. */
    struct pay_bytes ciphertext;
    /** Additional data; whoever opens it checks that it names what is being opened:
     * "params/<payment_id>/<caller>/<command_id>/<route index>",
     * "redirect/<payment_id>/<caller>/<command_id>" or "dead/<topic>/<partition>/<offset>". */
    struct pay_str bound_to;
};

#endif /* PAY_CONTRACTS_SEALED_H */
