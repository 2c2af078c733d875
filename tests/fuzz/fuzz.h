/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fuzz.h
 * @brief What a fuzz target is: one function that takes any bytes and must not crash, leak, hang or
 * break what it checks.
 *
 * With clang and PAY_FUZZ libFuzzer calls it; everywhere else replay.c calls it with every file of
 * the target's corpus. A target has no state that an earlier input could change.
 */
#ifndef PAY_TESTS_FUZZ_H
#define PAY_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/** libFuzzer's name and type. @return 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** What must hold for every input. */
#define FUZZ_CHECK(condition_)                                                                    \
    do {                                                                                          \
        if (!(condition_)) {                                                                      \
            (void)fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition_); \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

#endif /* PAY_TESTS_FUZZ_H */
