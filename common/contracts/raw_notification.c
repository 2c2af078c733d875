/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/raw_notification.h"

#include "common/contracts/binding.h"
#include "common/contracts/codec_internal.h"
#include "common/contracts/limits.h"

#include "common/base/banned.h"

static const struct pay_bind header[] = {
    PAY_TEXT("name", struct pay_http_header_line, name, 1, PAY_MAX_HEADER_NAME),
    PAY_BYTES("value", struct pay_http_header_line, value, 0, PAY_NOTIFICATION_HEADER_BYTES_MAX),
};
static const struct pay_bind_record bind_header = {header, PAY_FIELD_COUNT(header)};
static const struct pay_bind item_header = {
    .name = "(header)", .kind = PAY_BIND_RECORD, .record = &bind_header};

static const struct pay_bind fields[] = {
    PAY_TEXT("notification_id", struct pay_raw_notification, notification_id, 0, 255),
    PAY_TEXT("psp", struct pay_raw_notification, psp, 1, PAY_MAX_NAME),
    PAY_TEXT("psp_account", struct pay_raw_notification, psp_account, 1, PAY_MAX_NAME),
    PAY_TEXT("method", struct pay_raw_notification, method, 1, 16),
    PAY_TEXT("path", struct pay_raw_notification, path, 0, PAY_NOTIFICATION_PATH_MAX),
    PAY_TEXT("query", struct pay_raw_notification, query, 0, PAY_NOTIFICATION_PATH_MAX,
             .may_lack = true),
    PAY_LIST("headers", struct pay_raw_notification, headers, header_count,
             struct pay_http_header_line, &item_header, PAY_NOTIFICATION_HEADERS_MAX),
    PAY_BYTES("body", struct pay_raw_notification, body, 0, PAY_NOTIFICATION_BODY_MAX),
    PAY_TIME("received_at", struct pay_raw_notification, received_at_us),
    PAY_TRACEPARENT(struct pay_raw_notification),
};
const struct pay_bind_record pay_bind_raw_notification = {fields, PAY_FIELD_COUNT(fields)};

/* The one bound that spans several fields. */
static enum pay_status check_headers(const struct pay_raw_notification *record, struct pay_err *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < record->header_count; i++) {
        bytes += record->headers[i].name.len + record->headers[i].value.len;
    }
    return bytes > PAY_NOTIFICATION_HEADER_BYTES_MAX
               ? pay_codec_refuse(PAY_RECORD_RAW_NOTIFICATION, PAY_CODEC_TOO_LARGE,
                                  "the headers together are too large", err)
               : PAY_OK;
}

enum pay_status pay_raw_notification_encode(struct pay_codec *codec,
                                            const struct pay_raw_notification *record,
                                            struct pay_buf *out, struct pay_err *err)
{
    const size_t before = out->len;
    enum pay_status status = pay_codec_encode(codec, PAY_RECORD_RAW_NOTIFICATION, record, out, err);

    if (status == PAY_OK) {
        status = check_headers(record, err);
        if (status != PAY_OK) {
            pay_buf_cut(out, before);
        }
    }
    return status;
}

enum pay_status pay_raw_notification_decode(struct pay_codec *codec, struct pay_bytes value,
                                            struct pay_arena *arena,
                                            struct pay_raw_notification *ret_record,
                                            struct pay_err *err)
{
    struct pay_raw_notification record = {0};
    enum pay_status status =
        pay_codec_decode(codec, PAY_RECORD_RAW_NOTIFICATION, value, arena, &record, err);

    if (status == PAY_OK) {
        status = check_headers(&record, err);
    }
    if (status == PAY_OK) {
        *ret_record = record;
    }
    return status;
}
