/* SPDX-License-Identifier: Apache-2.0 */
/** @file delivery.h @brief From what libcurl says to what is certain about a request. Pure;
 * internal. */
#ifndef PAY_IO_HTTP_CLIENT_DELIVERY_H
#define PAY_IO_HTTP_CLIENT_DELIVERY_H

#include "common/io/http_client/http_client.h"

/** What is known when a transfer is over. */
struct pay_http_evidence {
    int curl_code;
    long request_size; /**< CURLINFO_REQUEST_SIZE: bytes of every request that was begun. */
    unsigned sends;    /**< How often the callback before the first byte let a request go. */
    long status;       /**< Of the last status line, 0: none. */
    bool is_whole;     /**< The head ended with its empty line, and the body had a declared end. */
};

/**
 * ANSWERED: no error, a final status and a whole answer (libcurl reports success for a head that
 * was cut short and for a body that only the connection's end delimits). NOT_SENT: an error that
 * ends a transfer before its first byte (DNS, connect, TLS, our own refusal), nothing was let go
 * and nothing written. Else UNKNOWN. COULDNT_CONNECT alone proves nothing: 7.88 reports it when its
 * silent second try is refused.
 */
enum pay_http_delivery pay_http_delivery_of(const struct pay_http_evidence *evidence);

#endif /* PAY_IO_HTTP_CLIENT_DELIVERY_H */
