/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/psp_job.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"

#include "common/base/banned.h"

static const struct pay_bind fields[] = {
    PAY_TEXT("job_id", struct pay_psp_job, job_id, 1, PAY_MAX_JOB_ID),
    PAY_ENUM("kind", struct pay_psp_job, kind, PAY_JOB_UNRECOGNIZED),
    PAY_TEXT("payment_id", struct pay_psp_job, payment_id, PAY_MAX_PAYMENT_ID, PAY_MAX_PAYMENT_ID),
    PAY_TEXT("merchant_id", struct pay_psp_job, merchant_id, 1, PAY_MAX_MERCHANT),
    PAY_TEXT("attempt_id", struct pay_psp_job, attempt_id, 1, PAY_MAX_ACTION_ID),
    PAY_TEXT("action_id", struct pay_psp_job, action_id, 1, PAY_MAX_ACTION_ID, PAY_OPTIONAL),
    PAY_TEXT("request_no", struct pay_psp_job, request_no, 1, PAY_MAX_ID),
    PAY_TEXT("psp", struct pay_psp_job, psp, 1, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_psp_job, psp_account, 1, PAY_MAX_NAME),
    PAY_TEXT("method", struct pay_psp_job, method, 0, PAY_MAX_NAME),
    PAY_TEXT("provider_reference", struct pay_psp_job, provider_reference, 1, PAY_MAX_REFERENCE,
             PAY_OPTIONAL),
    PAY_LIST("references", struct pay_psp_job, references, reference_count, struct pay_reference,
             &pay_item_reference, PAY_JOB_REFERENCES_MAX, .may_lack = true),
    PAY_LONG("amount_minor", struct pay_psp_job, amount_minor, 0, INT64_MAX),
    PAY_LONG("attempt_amount_minor", struct pay_psp_job, attempt_amount_minor, 0, INT64_MAX),
    PAY_CURRENCY(struct pay_psp_job, currency),
    PAY_ENUM("capture_mode", struct pay_psp_job, capture_mode, PAY_CAPTURE_UNRECOGNIZED),
    PAY_BOOL("is_final", struct pay_psp_job, is_final, true),
    PAY_PART("params", struct pay_psp_job, params, &pay_bind_sealed,
             PAY_IF_PTR(struct pay_psp_job, params.ciphertext.ptr)),
    PAY_TEXT("notify_url", struct pay_psp_job, notify_url, 1, PAY_MAX_URL, PAY_OPTIONAL),
    PAY_TEXT("description", struct pay_psp_job, description, 0, PAY_MAX_DESCRIPTION, PAY_OPTIONAL),
    PAY_TEXT("reason_code", struct pay_psp_job, reason_code, 0, PAY_MAX_CODE, PAY_OPTIONAL),
    PAY_TIME_OPTIONAL("expires_at", struct pay_psp_job, expires_at_us),
    PAY_TIME("not_after", struct pay_psp_job, not_after_us),
    PAY_TEXT("about_job_id", struct pay_psp_job, about_job_id, 1, PAY_MAX_JOB_ID, PAY_OPTIONAL),
    PAY_INT("try", struct pay_psp_job, try_no, 1, INT32_MAX, .may_lack = true, .by_default = 1),
    PAY_TRACEPARENT(struct pay_psp_job),
};
const struct pay_bind_record pay_bind_psp_job = {fields, PAY_FIELD_COUNT(fields)};

enum pay_status pay_psp_job_encode(struct pay_codec *codec, const struct pay_psp_job *record,
                                   struct pay_buf *out, struct pay_err *err)
{
    return pay_codec_encode(codec, PAY_RECORD_PSP_JOB, record, out, err);
}

enum pay_status pay_psp_job_decode(struct pay_codec *codec, struct pay_bytes value,
                                   struct pay_arena *arena, struct pay_psp_job *ret_record,
                                   struct pay_err *err)
{
    struct pay_psp_job record = {0};
    const enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_PSP_JOB, value, arena, &record, err);

    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}
