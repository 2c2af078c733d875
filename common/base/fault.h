/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fault.h
 * @brief Named kill points for the crash tests; compiled out unless PAY_FAULTS.
 *
 * PAYFACT_FAULT=name[:nth] in the environment ends the process with SIGKILL when the point of that
 * name is reached for the nth time (default 1), as a crash or a lost machine would. Threads: any.
 *
 *     PAY_FAULT("before_commit");
 */
#ifndef PAY_BASE_FAULT_H
#define PAY_BASE_FAULT_H

#include "common/base/attr.h" /* Compiled out, this would be an empty translation unit. */

#if PAY_FAULTS
#define PAY_FAULT(name_) pay_fault_point(name_)
/** @param name static. Does nothing unless the environment names it. */
void pay_fault_point(const char *name);
#else
#define PAY_FAULT(name_) ((void)0)
#endif

#endif /* PAY_BASE_FAULT_H */
