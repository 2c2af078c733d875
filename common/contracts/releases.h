/* SPDX-License-Identifier: Apache-2.0 */
/** @file releases.h @brief The table that CMake makes of schemas/avro/releases.txt, oldest first.
 */
#ifndef PAY_CONTRACTS_RELEASES_H
#define PAY_CONTRACTS_RELEASES_H

#include <stddef.h>

struct pay_release {
    const char *name;
    const char *versions; /**< " Record/version Record/version ", a blank at both ends. */
};

extern const struct pay_release pay_releases[];
extern const size_t pay_release_count;

#endif /* PAY_CONTRACTS_RELEASES_H */
