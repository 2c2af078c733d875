/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file registry.h
 * @brief The one table of PSP adapters. Every adapter in it verifies (S17): there is no mock.
 */
#ifndef PAY_PSP_REGISTRY_H
#define PAY_PSP_REGISTRY_H

#include "common/psp/adapter.h"

/** @return the adapter of that name; NULL when there is none. */
const struct pay_psp_adapter *pay_psp_find(struct pay_str name);
size_t pay_psp_count(void);
/** @param index below pay_psp_count(). */
const struct pay_psp_adapter *pay_psp_at(size_t index);

#endif /* PAY_PSP_REGISTRY_H */
