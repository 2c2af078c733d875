/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file psp_job.h
 * @brief One call to a PSP that is to be made (topic psp-jobs). Ownership, threads, failure:
 * codec.h.
 */
#ifndef PAY_CONTRACTS_PSP_JOB_H
#define PAY_CONTRACTS_PSP_JOB_H

#include "common/contracts/codec.h"
#include "common/contracts/sealed.h"
#include "common/core/event.h"

#define PAY_JOB_REFERENCES_MAX 64

struct pay_psp_job {
    struct pay_str job_id;
    enum pay_job_kind kind;
    struct pay_str payment_id;
    struct pay_str merchant_id;
    struct pay_str attempt_id;
    struct pay_str action_id; /**< Capture or refund id; absent for the attempt itself. */
    struct pay_str request_no;
    struct pay_str psp;
    struct pay_str psp_account;
    struct pay_str method;
    struct pay_str provider_reference; /**< Absent until bound. */
    const struct pay_reference *references;
    size_t reference_count;
    int64_t amount_minor; /**< Of this action; 0 for CANCEL and queries of the attempt. */
    int64_t attempt_amount_minor;
    char currency[PAY_CURRENCY_SIZE]; /**< Of both. */
    enum pay_capture_mode capture_mode;
    bool is_final;            /**< CAPTURE: release the rest. */
    struct pay_sealed params; /**< SUBMIT: its route's params; CONFIRM: redirect data. */
    struct pay_str notify_url;
    struct pay_str description;
    struct pay_str reason_code;
    int64_t expires_at_us; /**< To give to the PSP with SUBMIT; 0: none. */
    int64_t not_after_us;
    struct pay_str about_job_id; /**< QUERY*: the money job that may be replayed. */
    int try_no;                  /**< From 1. */
    struct pay_str traceparent;
};

PAY_MUST_CHECK enum pay_status pay_psp_job_encode(struct pay_codec *codec,
                                                  const struct pay_psp_job *record,
                                                  struct pay_buf *out, struct pay_err *err);
PAY_MUST_CHECK enum pay_status pay_psp_job_decode(struct pay_codec *codec, struct pay_bytes value,
                                                  struct pay_arena *arena,
                                                  struct pay_psp_job *ret_record,
                                                  struct pay_err *err);

#endif /* PAY_CONTRACTS_PSP_JOB_H */
