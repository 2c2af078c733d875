/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/http_server/head.h"

#include "common/io/http_server/http_server.h"

#include <string.h>
#include <strings.h>

#include "common/base/banned.h"

#define LENGTH_DIGITS_MAX 18 /* Fits an int64_t; far above every body_bytes_max. */

enum { OK = 0, BAD_REQUEST = 400, HEAD_TOO_LARGE = 431, BAD_VERSION = 505 };

bool pay_http_name_eq(struct pay_str name, const char *other)
{
    return strlen(other) == name.len && strncasecmp(name.ptr, other, name.len) == 0;
}

static bool is_token(struct pay_str text)
{
    static const char allowed[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    return text.len > 0 && strspn(text.ptr, allowed) == text.len;
}

static bool is_value(struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false; /* A bare CR above all. */
        }
    }
    return true;
}

static bool is_target(struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (c <= 0x20 || c >= 0x7f) {
            return false;
        }
    }
    return text.len > 0 && text.ptr[0] == '/';
}

/* Bytes from the end of one part to the start of the next; absurdly large when they are not in
 * order. */
static uintptr_t gap(struct pay_str part, const char *next)
{
    return (uintptr_t)next - ((uintptr_t)part.ptr + part.len);
}

/* Everything the parser swallowed is accounted for: nothing was folded, joined or dropped. */
static bool is_canonical(const struct pay_http_raw_head *head)
{
    struct pay_str last = head->version;

    if (gap(head->method, head->uri.ptr) != 1 || gap(head->uri, head->version.ptr) != 1) {
        return false;
    }
    for (size_t i = 0; i < head->count; i++) {
        const struct pay_http_raw_header *at = &head->headers[i];
        const uintptr_t colon = gap(at->name, at->value.ptr);
        if (gap(last, at->name.ptr) != 2 || colon < 1 || colon > head->bytes) {
            return false;
        }
        last = at->value;
    }
    return gap(last, head->method.ptr + head->bytes) == 4; /* CRLF CRLF */
}

struct seen {
    unsigned lengths, encodings, hosts;
    struct pay_str length, encoding;
};

static void see(struct seen *seen, const struct pay_http_raw_header *header)
{
    if (pay_http_name_eq(header->name, "content-length")) {
        seen->lengths++;
        seen->length = header->value;
    } else if (pay_http_name_eq(header->name, "transfer-encoding")) {
        seen->encodings++;
        seen->encoding = header->value;
    } else if (pay_http_name_eq(header->name, "host")) {
        seen->hosts++;
    }
}

static bool read_length(struct pay_str text, uint64_t *ret_length)
{
    uint64_t length = 0;

    if (text.len == 0 || text.len > LENGTH_DIGITS_MAX) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        length = length * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    *ret_length = length;
    return true;
}

static bool read_framing(const struct seen *seen, bool is_http10, struct pay_http_framing *framing)
{
    if (seen->lengths + seen->encodings > 1 || (is_http10 ? seen->hosts > 1 : seen->hosts != 1)) {
        return false;
    }
    if (seen->encodings == 1) {
        framing->chunked = true;
        framing->has_body = true;
        return !is_http10 && pay_http_name_eq(seen->encoding, "chunked");
    }
    if (seen->lengths == 1 && !read_length(seen->length, &framing->length)) {
        return false;
    }
    framing->has_body = framing->length > 0;
    return true;
}

unsigned pay_http_head_check(const struct pay_http_raw_head *head, struct pay_str target,
                             struct pay_http_framing *ret_framing)
{
    struct seen seen = {0};
    struct pay_http_framing framing = {0};

    if (head->count > PAY_HTTP_SERVER_HEADERS_MAX || head->bytes > PAY_HTTP_SERVER_HEAD_BYTES_MAX) {
        return HEAD_TOO_LARGE;
    }
    if (!is_token(head->method) || !is_target(target) || !is_canonical(head)) {
        return BAD_REQUEST;
    }
    const bool is_http10 = pay_str_eq_c(head->version, "HTTP/1.0");
    if (!is_http10 && !pay_str_eq_c(head->version, "HTTP/1.1")) {
        return BAD_VERSION;
    }
    for (size_t i = 0; i < head->count; i++) {
        if (!is_token(head->headers[i].name) || !is_value(head->headers[i].value)) {
            return BAD_REQUEST;
        }
        see(&seen, &head->headers[i]);
    }
    if (!read_framing(&seen, is_http10, &framing)) {
        return BAD_REQUEST;
    }
    *ret_framing = framing;
    return OK;
}
