/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file fault.h
 * @brief Named kill points for the crash tests; compiled out unless PAY_FAULTS.
 *
 * PAYFACT_FAULT=name[/of][:nth] in the environment ends the process with SIGKILL when the point of
 * that name is reached for the nth time (default 1), as a crash or a lost machine would. A point
 * that says what it is passed with is counted for that alone where the environment names it.
 * Threads: any.
 *
 *     PAY_FAULT("before_commit");
 *     PAY_FAULT_OF("after_gate_before_send", pay_job_kind_name(job->kind));
 */
#ifndef PAY_BASE_FAULT_H
#define PAY_BASE_FAULT_H

#include "common/base/attr.h" /* Compiled out, this would be an empty translation unit. */

#if PAY_FAULTS
#define PAY_FAULT(name_) pay_fault_point(name_, "")
#define PAY_FAULT_OF(name_, of_) pay_fault_point(name_, of_)
/**
 * @param name static. Does nothing unless the environment names it.
 * @param of what the point is passed with, as "REFUND"; "" where it says nothing.
 */
void pay_fault_point(const char *name, const char *of);
#else
#define PAY_FAULT(name_) ((void)0)
#define PAY_FAULT_OF(name_, of_) ((void)0)
#endif

#endif /* PAY_BASE_FAULT_H */
