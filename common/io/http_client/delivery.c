/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_client/delivery.h"

#include <curl/curl.h>

#include "common/base/banned.h"

/* Errors that can end a transfer before its first byte. A code that is not here is never NOT_SENT.
 */
static const CURLcode before_first_byte[] = {
    CURLE_COULDNT_RESOLVE_PROXY,
    CURLE_COULDNT_RESOLVE_HOST,
    CURLE_COULDNT_CONNECT,
    CURLE_OPERATION_TIMEDOUT, /* In DNS, connect or the TLS handshake. */
    CURLE_SSL_CONNECT_ERROR,
    CURLE_PEER_FAILED_VERIFICATION,
    CURLE_SSL_CERTPROBLEM,
    CURLE_SSL_CIPHER,
    CURLE_SSL_CACERT_BADFILE,
    CURLE_SSL_ISSUER_ERROR,
    CURLE_SSL_INVALIDCERTSTATUS,
    CURLE_ABORTED_BY_CALLBACK, /* Our own refusal: not_after has passed. */
};

static bool is_before_first_byte(int code)
{
    for (size_t i = 0; i < sizeof before_first_byte / sizeof before_first_byte[0]; i++) {
        if (code == (int)before_first_byte[i]) {
            return true;
        }
    }
    return false;
}

enum pay_http_delivery pay_http_delivery_of(const struct pay_http_evidence *evidence)
{
    if (evidence->curl_code == CURLE_OK && evidence->is_whole && evidence->status >= 200 &&
        evidence->status <= 599) {
        return PAY_HTTP_ANSWERED;
    }
    if (evidence->sends == 0 && evidence->request_size == 0 &&
        is_before_first_byte(evidence->curl_code)) {
        return PAY_HTTP_NOT_SENT;
    }
    return PAY_HTTP_UNKNOWN;
}

const char *pay_http_delivery_name(enum pay_http_delivery delivery)
{
    static const char *const names[] = {
        [PAY_HTTP_NOT_SENT] = "NOT_SENT",
        [PAY_HTTP_UNKNOWN] = "UNKNOWN",
        [PAY_HTTP_ANSWERED] = "ANSWERED",
    };
    return (unsigned)delivery < PAY_HTTP_DELIVERY_COUNT ? names[delivery] : "?";
}
