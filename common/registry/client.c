/* SPDX-License-Identifier: Apache-2.0 */
#include "common/registry/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/crypto/base64.h"
#include "common/crypto/secret.h"
#include "common/io/http_client/http_client.h"
#include "common/json/json.h"

#include "common/base/banned.h"

#define TIMEOUT_MS_DEFAULT 1500
#define URL_BYTES_MAX 2048
#define CREDENTIALS_BYTES_MAX ((size_t)8192)
#define ANSWER_BYTES_MAX ((size_t)512 * 1024) /* A schema, escaped. */

static const char op[] = "schema registry";

struct pay_registry {
    struct pay_registry_options options;
    struct pay_http_client *http;
};

/* One call and what came of it. */
struct call {
    struct pay_registry *registry;
    const char *method;
    struct pay_buf url;
    struct pay_buf body; /* Empty: none. */
    struct pay_http_result result;
    struct pay_json *doc;
};

const char *pay_registry_code_name(enum pay_registry_code code)
{
    static const char *const names[PAY_REGISTRY_CODE_COUNT] = {
        [PAY_REGISTRY_NONE] = "NONE",           [PAY_REGISTRY_AWAY] = "AWAY",
        [PAY_REGISTRY_DENIED] = "DENIED",       [PAY_REGISTRY_ODD] = "ODD",
        [PAY_REGISTRY_NOT_FOUND] = "NOT_FOUND", [PAY_REGISTRY_INCOMPATIBLE] = "INCOMPATIBLE",
        [PAY_REGISTRY_INVALID] = "INVALID",     [PAY_REGISTRY_UNSUPPORTED] = "UNSUPPORTED",
    };
    return (unsigned)code < PAY_REGISTRY_CODE_COUNT ? names[code] : "?";
}

/* ---- options ---- */

static bool is_set(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static bool is_loopback(const char *url)
{
    static const char *const hosts[] = {"http://127.0.0.1", "http://localhost", "http://[::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        const size_t len = strlen(hosts[i]);
        if (strncmp(url, hosts[i], len) == 0 && strchr(":/", url[len]) != NULL) {
            return true; /* strchr also finds the terminator. */
        }
    }
    return false;
}

static const char *wrong(const struct pay_registry_options *options)
{
    const bool has_credentials = is_set(options->user) || is_set(options->token_file);
    const struct pay_str url = pay_str_of(options->url);
    if (!is_set(options->url) ||
        (!pay_str_starts(url, "https://") && !pay_str_starts(url, "http://"))) {
        return "the url is neither http:// nor https://";
    }
    if (is_set(options->user) != is_set(options->password_file)) {
        return "a user needs a password file, and a password file a user";
    }
    if (is_set(options->user) && is_set(options->token_file)) {
        return "it is either a user or a token";
    }
    if (has_credentials && pay_str_starts(url, "http://") && !is_loopback(options->url)) {
        return "credentials do not go over plain http";
    }
    return NULL;
}

enum pay_status pay_registry_new(const struct pay_registry_options *options,
                                 struct pay_registry **ret_registry, struct pay_err *err)
{
    const char *why = wrong(options);
    if (why != NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op, "%s", why);
    }
    struct pay_registry *registry = pay_mem_new(1, sizeof *registry);
    if (registry == NULL) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_AWAY, op, "out of memory");
    }
    registry->options = *options;
    const struct pay_http_client_options http = {
        .ca_file = is_set(options->ca_file) ? options->ca_file : NULL,
        .allow_plain = true, /* wrong() has looked at what may go over it. */
        .body_bytes_max = ANSWER_BYTES_MAX,
    };
    const enum pay_status status = pay_http_client_new(&http, &registry->http, err);
    if (status != PAY_OK) {
        (void)pay_registry_free(registry); /* Always NULL. */
        return status;
    }
    *ret_registry = registry;
    return PAY_OK;
}

struct pay_registry *pay_registry_free(struct pay_registry *registry)
{
    if (registry != NULL) {
        registry->http = pay_http_client_free(registry->http);
    }
    return pay_mem_free(registry);
}

/* ---- one call ---- */

static void call_init(struct call *call, struct pay_registry *registry, const char *method)
{
    const char *url = registry->options.url;
    size_t len = strlen(url);
    while (len > 0 && url[len - 1] == '/') {
        len--;
    }
    *call = (struct call){.registry = registry,
                          .method = method,
                          .url = pay_buf_make(URL_BYTES_MAX),
                          .body = pay_buf_make(ANSWER_BYTES_MAX)};
    pay_buf_add(&call->url, url, len);
}

static void call_free(struct call *call)
{
    call->doc = pay_json_free(call->doc);
    pay_http_result_free(&call->result);
    pay_buf_free(&call->body);
    pay_buf_free(&call->url);
}

static void wipe(struct pay_buf *buf)
{
    if (buf->data != NULL) {
        pay_mem_wipe(buf->data, buf->len);
    }
    pay_buf_free(buf);
}

/* "Basic ..." or "Bearer ..."; nothing without credentials. */
static enum pay_status add_credentials(const struct pay_registry_options *options,
                                       struct pay_buf *out, struct pay_err *err)
{
    struct pay_secret *secret = NULL;
    struct pay_buf plain = pay_buf_make(CREDENTIALS_BYTES_MAX);
    const bool is_basic = is_set(options->user);
    if (!is_basic && !is_set(options->token_file)) {
        return PAY_OK;
    }
    enum pay_status status =
        pay_secret_load(is_basic ? options->password_file : options->token_file, &secret, err);
    if (status != PAY_OK) { /* A rotation may be half way. */
        status = pay_err_set(err, PAY_RETRY, PAY_REGISTRY_DENIED, op, "cannot read '%.100s'",
                             is_basic ? options->password_file : options->token_file);
        goto out;
    }
    const struct pay_bytes bytes = pay_secret_bytes(secret);
    if (is_basic) {
        pay_buf_printf(&plain, "%s:", options->user);
        pay_buf_add(&plain, bytes.ptr, bytes.len);
        pay_buf_add_c(out, "Basic ");
        pay_base64_encode(pay_buf_bytes(&plain), out);
    } else {
        pay_buf_add_c(out, "Bearer ");
        pay_buf_add(out, bytes.ptr, bytes.len);
    }
    if (plain.failed || out->failed) {
        status =
            pay_err_set(err, PAY_RETRY, PAY_REGISTRY_DENIED, op, "the credentials are too long");
    }
out:
    secret = pay_secret_free(secret);
    wipe(&plain);
    return status;
}

static enum pay_status send(struct call *call, struct pay_err *err)
{
    const struct pay_registry_options *options = &call->registry->options;
    const unsigned timeout_ms = options->timeout_ms == 0 ? TIMEOUT_MS_DEFAULT : options->timeout_ms;
    struct pay_buf credentials = pay_buf_make(2 * CREDENTIALS_BYTES_MAX);
    struct pay_http_call_header headers[3] = {
        {PAY_STR("Accept"), PAY_STR("application/vnd.schemaregistry.v1+json, application/json")}};
    size_t count = 1;
    const enum pay_status status = add_credentials(options, &credentials, err);
    if (status == PAY_OK) {
        if (call->body.len > 0) {
            headers[count++] = (struct pay_http_call_header){
                PAY_STR("Content-Type"), PAY_STR("application/vnd.schemaregistry.v1+json")};
        }
        if (credentials.len > 0) {
            headers[count++] =
                (struct pay_http_call_header){PAY_STR("Authorization"), pay_buf_str(&credentials)};
        }
        const struct pay_http_call http = {
            .kind = PAY_HTTP_QUERY, /* Every call here may be repeated. */
            .method = call->method,
            .url = pay_buf_str(&call->url).ptr,
            .headers = headers,
            .header_count = count,
            .body = call->body.len > 0 ? pay_buf_bytes(&call->body) : (struct pay_bytes){NULL, 0},
            .connect_timeout_ms = timeout_ms,
            .total_timeout_ms = timeout_ms,
        };
        pay_http_client_call(call->registry->http, &http, &call->result);
    }
    wipe(&credentials);
    return status;
}

/* Confluent's own codes begin with the HTTP status: a bare 404 only says that the path is wrong. */
static enum pay_status say_no(const struct call *call, struct pay_err *err)
{
    const int http = call->result.status;
    const struct pay_json_value *root = pay_json_root(call->doc);
    int64_t own = 0;
    if (!pay_json_int(pay_json_member(root, "error_code"), &own)) {
        own = 0;
    }
    if (http == 401 || http == 403) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_DENIED, op,
                           "it refuses the credentials (HTTP %d)", http);
    }
    if (http == 404 && own / 100 == 404) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_NOT_FOUND, op, "there is no such %s",
                           own == 40403 ? "schema" : "subject or version");
    }
    if (http == 409) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_INCOMPATIBLE, op,
                           "the schema is not compatible with an earlier version");
    }
    if (http == 422) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_INVALID, op,
                           "it does not take what was sent (%d)", (int)own);
    }
    if (http == 429 || http >= 500) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_AWAY, op, "it answers HTTP %d", http);
    }
    return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_ODD, op,
                       "an unexpected answer (HTTP %d): is the url right?", http);
}

/* @return PAY_OK: a JSON answer of status 200 stands in call->doc. */
static enum pay_status run(struct call *call, struct pay_err *err)
{
    struct pay_err unread = {.status = PAY_OK};
    if (call->url.failed || call->body.failed) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_UNSUPPORTED, op, "the call is too long");
    }
    const enum pay_status status = send(call, err);
    if (status != PAY_OK) {
        return status;
    }
    if (call->result.delivery != PAY_HTTP_ANSWERED) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_AWAY, op, "no answer: %s",
                           call->result.text);
    }
    const bool is_json =
        pay_json_parse(call->result.body, ANSWER_BYTES_MAX, &call->doc, &unread) == PAY_OK;
    if (call->result.status != 200) {
        return say_no(call, err);
    }
    return is_json ? PAY_OK
                   : pay_err_set(err, PAY_RETRY, PAY_REGISTRY_ODD, op, "an answer that is no JSON");
}

static enum pay_status odd(struct pay_err *err, const char *what)
{
    return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_ODD, op, "an answer without %s", what);
}

/* ---- reading ---- */

static bool take_id(const struct call *call, uint32_t *ret_id)
{
    int64_t id = 0;
    if (!pay_json_int(pay_json_member(pay_json_root(call->doc), "id"), &id) || id < 0 ||
        id > UINT32_MAX) {
        return false;
    }
    *ret_id = (uint32_t)id;
    return true;
}

static enum pay_status take_schema(const struct call *call, struct pay_buf *schema,
                                   struct pay_err *err)
{
    const struct pay_json_value *root = pay_json_root(call->doc);
    const struct pay_str text = pay_json_str(pay_json_member(root, "schema"));
    const struct pay_str type = pay_json_str(pay_json_member(root, "schemaType"));
    if (text.ptr == NULL) {
        return odd(err, "a schema");
    }
    if ((type.ptr != NULL && !pay_str_eq_c(type, "AVRO")) ||
        pay_json_count(pay_json_member(root, "references")) > 0 ||
        text.len > PAY_REGISTRY_SCHEMA_BYTES_MAX) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_UNSUPPORTED, op,
                           "a schema that is not Avro, has references or is too long");
    }
    pay_buf_add_str(schema, text);
    return schema->failed
               ? pay_err_set(err, PAY_REJECT, PAY_REGISTRY_UNSUPPORTED, op, "no room for a schema")
               : PAY_OK;
}

enum pay_status pay_registry_fetch(struct pay_registry *registry, uint32_t id,
                                   struct pay_buf *schema, struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "GET");
    pay_buf_printf(&call.url, "/schemas/ids/%u", (unsigned)id);
    enum pay_status status = run(&call, err);
    if (status == PAY_OK) {
        status = take_schema(&call, schema, err);
    }
    call_free(&call);
    return status;
}

static enum pay_status take_versions(const struct call *call, struct pay_registry_versions *into,
                                     struct pay_err *err)
{
    const struct pay_json_value *root = pay_json_root(call->doc);
    const size_t count = pay_json_count(root);
    if (pay_json_kind(root) != PAY_JSON_ARRAY) {
        return odd(err, "versions");
    }
    if (count > PAY_REGISTRY_VERSIONS_MAX) {
        return pay_err_set(err, PAY_REJECT, PAY_REGISTRY_UNSUPPORTED, op,
                           "a subject with more than %d versions", PAY_REGISTRY_VERSIONS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        int64_t number = 0;
        if (!pay_json_int(pay_json_item(root, i), &number) || number < 1 || number > INT32_MAX) {
            return odd(err, "versions");
        }
        into->numbers[i] = (int)number;
    }
    into->count = count;
    return PAY_OK;
}

enum pay_status pay_registry_versions(struct pay_registry *registry, const char *subject,
                                      struct pay_registry_versions *ret_versions,
                                      struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "GET");
    pay_buf_printf(&call.url, "/subjects/%s/versions", subject);
    enum pay_status status = run(&call, err);
    if (status == PAY_OK) {
        status = take_versions(&call, ret_versions, err);
    }
    call_free(&call);
    return status;
}

enum pay_status pay_registry_version(struct pay_registry *registry, const char *subject,
                                     int version, uint32_t *ret_id, struct pay_buf *schema,
                                     struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "GET");
    pay_buf_printf(&call.url, "/subjects/%s/versions/%d", subject, version);
    enum pay_status status = run(&call, err);
    if (status == PAY_OK) {
        status = take_schema(&call, schema, err);
    }
    if (status == PAY_OK && !take_id(&call, ret_id)) {
        status = odd(err, "an id");
    }
    call_free(&call);
    return status;
}

/* ---- writing ---- */

static void add_schema(struct call *call, struct pay_str schema)
{
    pay_buf_add_c(&call->body, "{\"schema\":");
    pay_buf_add_json_str(&call->body, schema);
    pay_buf_add_c(&call->body, "}");
}

enum pay_status pay_registry_is_compatible(struct pay_registry *registry, const char *subject,
                                           struct pay_str schema, bool *ret_is_compatible,
                                           struct pay_err *err)
{
    struct call call;
    struct pay_err own = {.status = PAY_OK};
    call_init(&call, registry, "POST");
    pay_buf_printf(&call.url, "/compatibility/subjects/%s/versions", subject);
    add_schema(&call, schema);
    enum pay_status status = run(&call, &own);
    bool is_compatible = status == PAY_REJECT && own.code == PAY_REGISTRY_NOT_FOUND;
    if (is_compatible) { /* Nothing there yet to be compatible with. */
        status = PAY_OK;
    } else if (status != PAY_OK) {
        status = pay_err_set(err, status, own.code, op, "%s", own.text);
    } else if (!pay_json_bool(pay_json_member(pay_json_root(call.doc), "is_compatible"),
                              &is_compatible)) {
        status = odd(err, "a verdict");
    }
    if (status == PAY_OK) {
        *ret_is_compatible = is_compatible;
    }
    call_free(&call);
    return status;
}

enum pay_status pay_registry_register(struct pay_registry *registry, const char *subject,
                                      struct pay_str schema, uint32_t *ret_id, struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "POST");
    pay_buf_printf(&call.url, "/subjects/%s/versions", subject);
    add_schema(&call, schema);
    enum pay_status status = run(&call, err);
    if (status == PAY_OK && !take_id(&call, ret_id)) {
        status = odd(err, "an id");
    }
    call_free(&call);
    return status;
}

enum pay_status pay_registry_set_compatibility(struct pay_registry *registry, const char *subject,
                                               const char *level, struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "PUT");
    pay_buf_printf(&call.url, "/config/%s", subject);
    pay_buf_printf(&call.body, "{\"compatibility\":\"%s\"}", level);
    const enum pay_status status = run(&call, err);
    call_free(&call);
    return status;
}

enum pay_status pay_registry_compatibility(struct pay_registry *registry, const char *subject,
                                           char level[32], struct pay_err *err)
{
    struct call call;
    call_init(&call, registry, "GET");
    pay_buf_printf(&call.url, "/config/%s", subject);
    enum pay_status status = run(&call, err);
    if (status == PAY_OK && !pay_str_copy(level, 32,
                                          pay_json_str(pay_json_member(pay_json_root(call.doc),
                                                                       "compatibilityLevel")))) {
        status = odd(err, "a compatibility level");
    }
    call_free(&call);
    return status;
}

bool pay_registry_subject(char dst[PAY_REGISTRY_SUBJECT_MAX], const char *topic)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    dst[0] = '\0';
    if (topic[0] == '\0' || topic[strspn(topic, allowed)] != '\0') {
        return false; /* It stands in a path as it is. */
    }
    const int len = snprintf(dst, PAY_REGISTRY_SUBJECT_MAX, "%s-value", topic);
    return len > 0 && len < PAY_REGISTRY_SUBJECT_MAX;
}
