/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file head.h
 * @brief Refuses a request head that two HTTP parsers could read in two ways. Pure; internal.
 *
 * libmicrohttpd 0.9.75 accepts folded headers, bare LF, two Content-Lengths and Content-Length
 * beside Transfer-Encoding (measured). It parses in place, so the addresses of the parts tell what
 * stood between them: exactly ": value CRLF" everywhere, or the head is refused.
 */
#ifndef PAY_IO_HTTP_SERVER_HEAD_H
#define PAY_IO_HTTP_SERVER_HEAD_H

#include "common/base/str.h"

struct pay_http_raw_header {
    struct pay_str name;
    struct pay_str value;
};

/** The parts as the parser left them, all inside one block that starts at method. */
struct pay_http_raw_head {
    struct pay_str method;
    struct pay_str uri; /**< Place and length only; its bytes are not read. */
    struct pay_str version;
    const struct pay_http_raw_header *headers;
    size_t count;
    size_t bytes; /**< Of the block, from the method to the end of the empty line. */
};

/** How the body is delimited. */
struct pay_http_framing {
    bool has_body;
    bool chunked;
    uint64_t length; /**< When not chunked. */
};

/**
 * @param target the bytes of the URI as received: those in the block are unescaped by now.
 * @return 0: sound; else the HTTP status to refuse it with. @p ret_framing is set when 0.
 */
unsigned pay_http_head_check(const struct pay_http_raw_head *head, struct pay_str target,
                             struct pay_http_framing *ret_framing);

/** ASCII, without case. */
bool pay_http_name_eq(struct pay_str name, const char *other);

#endif /* PAY_IO_HTTP_SERVER_HEAD_H */
