/* SPDX-License-Identifier: Apache-2.0 */
#include "common/psp/stripe.h"

#include "common/crypto/hmac.h"
#include "common/psp/stripe_internal.h"

#include <string.h>

#include "common/base/banned.h"

#define TOLERANCE_S INT64_C(300)
#define HEADER_BYTES_MAX 8192
#define SECONDS(n) (INT64_C(n) * 1000000)

/* ISK and UGX are sent x100 although they have no decimals; the fils of three-decimal currencies
 * end in 0. HUF and TWD have two decimals here (only payouts are whole), which is the default. */
const struct pay_psp_currency pay_stripe_currencies[] = {
    {"BIF", 0, 1},   {"CLP", 0, 1},   {"DJF", 0, 1},  {"GNF", 0, 1},  {"JPY", 0, 1},
    {"KMF", 0, 1},   {"KRW", 0, 1},   {"MGA", 0, 1},  {"PYG", 0, 1},  {"RWF", 0, 1},
    {"VND", 0, 1},   {"VUV", 0, 1},   {"XAF", 0, 1},  {"XOF", 0, 1},  {"XPF", 0, 1},
    {"ISK", 2, 100}, {"UGX", 2, 100}, {"BHD", 3, 10}, {"JOD", 3, 10}, {"KWD", 3, 10},
    {"OMR", 3, 10},  {"TND", 3, 10},  {"", 0, 1},
};

/* One "name=value" of the header. */
struct piece {
    struct pay_str name;
    struct pay_str value;
};

/* Cuts the next piece off @p rest. @return false: it has no '='. */
static bool next_piece(struct pay_str *rest, struct piece *ret_piece)
{
    while (rest->len > 0 && *rest->ptr == ' ') {
        *rest = (struct pay_str){rest->ptr + 1, rest->len - 1};
    }
    const char *comma = memchr(rest->ptr, ',', rest->len);
    const size_t len = comma == NULL ? rest->len : (size_t)(comma - rest->ptr);
    const char *equals = memchr(rest->ptr, '=', len);
    if (equals == NULL) {
        return false;
    }
    const size_t name_len = (size_t)(equals - rest->ptr);
    ret_piece->name = (struct pay_str){rest->ptr, name_len};
    ret_piece->value = (struct pay_str){equals + 1, len - name_len - 1};
    const size_t used = comma == NULL ? len : len + 1;
    *rest = (struct pay_str){rest->ptr + used, rest->len - used};
    return true;
}

/* Digits as Stripe writes them: the text is what was signed, so one number has one form. */
static bool parse_time(struct pay_str text, int64_t *ret_seconds)
{
    return text.len >= 1 && text.len <= 12 && text.ptr[0] >= '1' && text.ptr[0] <= '9' &&
           pay_str_to_i64(text, ret_seconds);
}

/* The whole header is read before anything is computed. */
static enum pay_psp_reason read_header(struct pay_str header, struct pay_str *ret_time,
                                       int64_t *ret_seconds)
{
    size_t times = 0, signatures = 0;
    struct piece piece;
    for (struct pay_str rest = header; rest.len > 0;) {
        if (!next_piece(&rest, &piece)) {
            return PAY_PSP_MALFORMED_HEADER;
        }
        if (pay_str_eq_c(piece.name, "t")) {
            times++;
            *ret_time = piece.value;
        }
        signatures += pay_str_eq_c(piece.name, "v1");
    }
    if (times != 1 || !parse_time(*ret_time, ret_seconds)) {
        return PAY_PSP_MALFORMED_HEADER;
    }
    return signatures == 0 ? PAY_PSP_NO_V1_SIGNATURE : PAY_PSP_OK;
}

/* Looks at every v1, matching or not: how long it takes says nothing. */
static bool any_v1_equals(struct pay_str header, const uint8_t mac[PAY_HMAC_BYTES])
{
    bool found = false;
    struct piece piece;
    for (struct pay_str rest = header; rest.len > 0 && next_piece(&rest, &piece);) {
        uint8_t given[PAY_HMAC_BYTES];
        if (pay_str_eq_c(piece.name, "v1") && piece.value.len == 2 * sizeof given &&
            pay_hex_decode(piece.value, given, sizeof given)) {
            found |= pay_mac_eq((struct pay_bytes){given, sizeof given},
                                (struct pay_bytes){mac, PAY_HMAC_BYTES});
        }
    }
    return found;
}

enum pay_psp_reason pay_stripe_check_signature(struct pay_str header, struct pay_bytes body,
                                               const struct pay_bytes *keys, size_t key_count,
                                               int64_t now_us, size_t *ret_index)
{
    struct pay_str time = {NULL, 0};
    int64_t seconds = 0;
    if (header.ptr == NULL || header.len == 0) {
        return PAY_PSP_HEADER_MISSING;
    }
    if (header.len > HEADER_BYTES_MAX) {
        return PAY_PSP_MALFORMED_HEADER;
    }
    const enum pay_psp_reason form = read_header(header, &time, &seconds);
    if (form != PAY_PSP_OK) {
        return form;
    }
    const struct pay_bytes parts[] = {
        {(const uint8_t *)time.ptr, time.len}, {(const uint8_t *)".", 1}, {body.ptr, body.len}};
    bool found = false;
    size_t index = 0;
    for (size_t i = 0; i < key_count; i++) {
        uint8_t mac[PAY_HMAC_BYTES];
        pay_hmac_sha256_parts(keys[i], parts, sizeof parts / sizeof parts[0], mac);
        if (any_v1_equals(header, mac) && !found) {
            found = true;
            index = i;
        }
    }
    if (!found) {
        return PAY_PSP_SIGNATURE_MISMATCH;
    }
    const int64_t age = now_us / 1000000 - seconds;
    if (age > TOLERANCE_S || age < -TOLERANCE_S) {
        return age > 0 ? PAY_PSP_TIMESTAMP_TOO_OLD : PAY_PSP_TIMESTAMP_IN_FUTURE;
    }
    *ret_index = index;
    return PAY_PSP_OK;
}

static enum pay_psp_reason verify(const struct pay_psp_account *account,
                                  const struct pay_psp_notification *raw, int64_t now_us,
                                  struct pay_str *ret_key_id)
{
    static const char name[] = "Stripe-Signature";
    const struct pay_psp_header *first = pay_psp_header_find(raw->headers, raw->header_count, name);
    if (first == NULL) {
        return PAY_PSP_HEADER_MISSING;
    }
    /* Which of two lines counts must not depend on a server's library. */
    const size_t after = (size_t)(first - raw->headers) + 1;
    if (pay_psp_header_find(raw->headers + after, raw->header_count - after, name) != NULL) {
        return PAY_PSP_HEADER_REPEATED;
    }
    struct pay_bytes keys[PAY_PSP_KEYS_MAX];
    for (size_t i = 0; i < account->callback_key_count; i++) {
        keys[i] = pay_secret_bytes(account->callback_keys[i].secret);
    }
    if (account->callback_key_count == 0) {
        return PAY_PSP_NO_KEYS;
    }
    size_t index = 0;
    const enum pay_psp_reason reason = pay_stripe_check_signature(
        first->value, raw->body, keys, account->callback_key_count, now_us, &index);
    if (reason == PAY_PSP_OK) {
        *ret_key_id = pay_str_of(account->callback_keys[index].id);
    }
    return reason;
}

#define BODY(text) {(const uint8_t *)(text), sizeof(text) - 1}
#define JSON_TYPE "application/json"

/* Any 2xx is "delivered"; Stripe ignores the body and repeats everything else for three days. */
static const struct pay_psp_answer answers[PAY_PSP_OUTCOME_COUNT] = {
    [PAY_PSP_DURABLE] = {200, JSON_TYPE, BODY("{\"received\":true}"), 0},
    [PAY_PSP_DUPLICATE] = {200, JSON_TYPE, BODY("{\"received\":true}"), 0},
    [PAY_PSP_REFUSED] = {400, JSON_TYPE, BODY("{\"error\":\"refused\"}"), 0},
    [PAY_PSP_MISMATCH] = {400, JSON_TYPE, BODY("{\"error\":\"mismatch\"}"), 0},
    [PAY_PSP_UNAVAILABLE] = {503, JSON_TYPE, BODY("{\"error\":\"unavailable\"}"), 5},
    [PAY_PSP_BODY_TOO_LARGE] = {413, JSON_TYPE, BODY("{\"error\":\"too large\"}"), 0},
    [PAY_PSP_TOO_FAST] = {429, JSON_TYPE, BODY("{\"error\":\"too fast\"}"), 1},
    [PAY_PSP_UNKNOWN_ACCOUNT] = {404, JSON_TYPE, BODY("{\"error\":\"not found\"}"), 0},
};

static struct pay_psp_answer answer(enum pay_psp_outcome outcome)
{
    return answers[(unsigned)outcome < PAY_PSP_OUTCOME_COUNT ? outcome : PAY_PSP_UNAVAILABLE];
}

static enum pay_status authorize(const struct pay_psp_account *account,
                                 const struct pay_psp_request *request, struct pay_arena *arena,
                                 struct pay_psp_header *ret_header, struct pay_err *err)
{
    (void)request; /* The key is all: Stripe's requests are not signed. */
    const struct pay_psp_key *key = pay_psp_credential(account, "secret_key");
    if (key == NULL) {
        return pay_err_set(err, PAY_REJECT, PAY_PSP_NO_KEYS, "authorize",
                           "account '%s' has no secret_key", account->id);
    }
    const struct pay_bytes secret = pay_secret_bytes(key->secret);
    const struct pay_str value =
        pay_arena_printf(arena, "Bearer %.*s", (int)secret.len, (const char *)secret.ptr);
    if (value.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, PAY_PSP_NO_MEMORY, "authorize", "arena is full");
    }
    *ret_header = (struct pay_psp_header){PAY_STR("Authorization"), value};
    return PAY_OK;
}

/* "2024-06-20", with ".acacia" or the like behind it. */
static bool is_version(const char *text)
{
    static const char form[] = "0000-00-00";
    for (size_t i = 0; i < sizeof form - 1; i++) {
        const bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == '0' ? !digit : text[i] != '-') {
            return false;
        }
    }
    const char *suffix = text + sizeof form - 1;
    const size_t letters = strspn(suffix + (*suffix == '.'), "abcdefghijklmnopqrstuvwxyz");
    return *suffix == '\0' || (*suffix == '.' && letters > 0 && suffix[1 + letters] == '\0');
}

static bool starts_with_one(struct pay_bytes bytes, const char *a, const char *b)
{
    const struct pay_str text = {(const char *)bytes.ptr, bytes.len};
    return pay_str_starts(text, a) || pay_str_starts(text, b);
}

static bool is_printable(struct pay_bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        if (bytes.ptr[i] <= ' ' || bytes.ptr[i] > '~') {
            return false;
        }
    }
    return true;
}

/* A header's value must not break the line, and a key of the other mode calls real cards. */
static enum pay_status check_secret_key(const struct pay_psp_account *account, struct pay_err *err)
{
    const struct pay_psp_key *key = pay_psp_credential(account, "secret_key");
    if (key == NULL) {
        return PAY_OK; /* credential_rules ask for it. */
    }
    const struct pay_bytes secret = pay_secret_bytes(key->secret);
    if (!is_printable(secret)) {
        return pay_err_set(err, PAY_FATAL, 0, "check account",
                           "credentials.secret_key holds a character that no key has");
    }
    const bool wrong = account->live ? starts_with_one(secret, "sk_test_", "rk_test_")
                                     : starts_with_one(secret, "sk_live_", "rk_live_");
    if (wrong) {
        return pay_err_set(err, PAY_FATAL, 0, "check account",
                           "credentials.secret_key is of the other mode than 'live' says");
    }
    return PAY_OK;
}

static enum pay_status check_account(const struct pay_psp_account *account, struct pay_err *err)
{
    const char *version = pay_psp_setting(account, "api_version");
    if (version != NULL && !is_version(version)) {
        return pay_err_set(err, PAY_FATAL, 0, "check account",
                           "settings.api_version is no date such as 2024-06-20");
    }
    const char *connect = pay_psp_setting(account, "connect_account");
    if (connect != NULL && !pay_str_starts(pay_str_of(connect), "acct_")) {
        return pay_err_set(err, PAY_FATAL, 0, "check account",
                           "settings.connect_account does not start with acct_");
    }
    return check_secret_key(account, err);
}

static const struct pay_psp_name_rule credential_rules[] = {{"secret_key", true}, {NULL, false}};
static const struct pay_psp_name_rule setting_rules[] = {
    {"api_version", true}, {"connect_account", false}, {NULL, false}};

const struct pay_psp_adapter pay_psp_stripe = {
    .name = "stripe",
    .verify = verify,
    .parse = pay_stripe_parse,
    .answer = answer,
    .choose_query = pay_stripe_choose_query,
    .build = pay_stripe_build,
    .authorize = authorize,
    .read = pay_stripe_read,
    .check_account = check_account,
    .traits = {.can_cancel = true,           /* Cancel fails on a succeeded intent. */
               .confirm_moves_money = false, /* We confirm with the create. */
               .finds_by_request_no = false, /* Search lags: its not-found proves nothing. */
               .not_founds_needed = 3,
               .send_window_us = SECONDS(120),
               .answer_us = SECONDS(60),
               .call_budget_us = SECONDS(20),
               .longest_processing_us = SECONDS(60),
               .visibility_grace_us = SECONDS(90),
               .query_first_us = SECONDS(5),
               .person_after_us = SECONDS(3600),
               .action_lifetime_us = SECONDS(3600),
               .cancel_retry_us = SECONDS(30),
               .captures_part = true,
               .captures_again = false, /* Once; the rest is released. */
               .queries_captures = true,
               .queries_refunds = true,
               .finds_captures_by_no = true, /* Both stand in the intent, not in an index. */
               .finds_refunds_by_no = true,
               /* Past the day for which a refusal is kept under the key and played back. */
               .action_life_us = SECONDS(72 * 3600),
               .action_retry_us = SECONDS(300)},
    .query_order = {PAY_QUERY_BY_PSP_REFERENCE, PAY_QUERY_BY_IDEMPOTENT_REPLAY, PAY_QUERY_BY_SEARCH,
                    PAY_QUERY_BY_NONE}, /* Of the attempt; captures and refunds by their number. */
    .replay_lifetime_us = SECONDS(24 * 3600) / 10 * 9,
    .answer_timeout_ms = 2000,
    .tolerance_us = TOLERANCE_S * 1000000,
    .callback_bytes_max = 262144,
    .reference_bytes_max = PAY_STRIPE_ID_MAX,
    .request_no_bytes_max = 500, /* A metadata value. */
    .idempotency_key_bytes_max = 255,
    .description_bytes_max = 1000,
    .credential_rules = credential_rules,
    .setting_rules = setting_rules,
    .extra_names = pay_stripe_extra_names,
};
