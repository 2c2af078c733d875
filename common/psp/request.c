/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/request.h"

#include "common/json/json.h"

#include <string.h>

#include "common/base/banned.h"

/* Escapes may make it longer than PAY_PSP_REQUEST_BYTES_MAX. */
#define STORED_BYTES_MAX 262144u

/* Every body so far is text; a PSP with a binary one needs another form here. */
static struct pay_str text_of(struct pay_bytes bytes)
{
    return (struct pay_str){(const char *)bytes.ptr, bytes.len};
}

void pay_psp_request_write(const struct pay_psp_request *request, struct pay_buf *out)
{
    pay_buf_add_c(out, "{\"method\":");
    pay_buf_add_json_str(out, pay_str_of(request->method));
    pay_buf_add_c(out, ",\"url\":");
    pay_buf_add_json_str(out, request->url);
    pay_buf_add_c(out, ",\"headers\":[");
    for (size_t i = 0; i < request->header_count; i++) {
        pay_buf_add_c(out, i == 0 ? "[" : ",[");
        pay_buf_add_json_str(out, request->headers[i].name);
        pay_buf_add_char(out, ',');
        pay_buf_add_json_str(out, request->headers[i].value);
        pay_buf_add_char(out, ']');
    }
    pay_buf_add_c(out, "],\"body\":");
    pay_buf_add_json_str(out, text_of(request->body));
    pay_buf_add_c(out, ",\"idempotency_key\":");
    pay_buf_add_json_str(out, request->idempotency_key);
    pay_buf_add_char(out, '}');
}

/* Copied, because the document ends with this call; null stays absent. */
static bool take(const struct pay_json_value *value, struct pay_arena *arena,
                 struct pay_str *ret_text)
{
    const struct pay_str text = pay_json_str(value);
    *ret_text = pay_arena_str(arena, text);
    return (text.ptr == NULL) == (ret_text->ptr == NULL);
}

static const char *method_of(struct pay_str name)
{
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        if (pay_str_eq_c(name, methods[i])) {
            return methods[i];
        }
    }
    return NULL;
}

static bool take_headers(const struct pay_json_value *list, struct pay_arena *arena,
                         struct pay_psp_request *request, bool *ret_complete)
{
    request->header_count = pay_json_count(list);
    *ret_complete = request->header_count <= PAY_PSP_REQUEST_HEADERS_MAX;
    for (size_t i = 0; *ret_complete && i < request->header_count; i++) {
        const struct pay_json_value *pair = pay_json_item(list, i);
        if (!take(pay_json_item(pair, 0), arena, &request->headers[i].name) ||
            !take(pay_json_item(pair, 1), arena, &request->headers[i].value)) {
            return false;
        }
        *ret_complete =
            request->headers[i].name.ptr != NULL && request->headers[i].value.ptr != NULL;
    }
    return true;
}

enum pay_status pay_psp_request_read(struct pay_bytes stored, struct pay_arena *arena,
                                     struct pay_psp_request *ret_request, struct pay_err *err)
{
    struct pay_json *doc = NULL;
    struct pay_psp_request request = {0};
    struct pay_str body = {NULL, 0};
    bool complete = false;
    enum pay_status status = pay_json_parse(stored, STORED_BYTES_MAX, &doc, err);
    if (status != PAY_OK) {
        goto out;
    }
    const struct pay_json_value *root = pay_json_root(doc);
    request.method = method_of(pay_json_str(pay_json_member(root, "method")));
    if (!take(pay_json_member(root, "url"), arena, &request.url) ||
        !take(pay_json_member(root, "body"), arena, &body) ||
        !take(pay_json_member(root, "idempotency_key"), arena, &request.idempotency_key) ||
        !take_headers(pay_json_member(root, "headers"), arena, &request, &complete)) {
        status = pay_err_set(err, PAY_RETRY, PAY_PSP_NO_MEMORY, "stored request", "arena is full");
        goto out;
    }
    if (request.method == NULL || request.url.ptr == NULL || !complete) {
        status = pay_err_set(err, PAY_REJECT, PAY_PSP_MALFORMED_EVENT, "stored request",
                             "not a stored request");
        goto out;
    }
    request.body = (struct pay_bytes){(const uint8_t *)body.ptr, body.len};
    *ret_request = request;
out:
    pay_json_free(doc);
    return status;
}
