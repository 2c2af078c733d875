/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/id.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/hash.h"

#include "common/base/banned.h"

#define PAYMENT_ID_LEN (PAY_PAYMENT_ID_SIZE - 1)
#define ACTION_ID_LEN (PAY_ACTION_ID_SIZE - 1)
#define DECIMAL_SIZE 21 /* int64_t with its sign, and the terminator. */
#define HASH_HEX_LEN 16

/* Appends text; overflow is a bug of the size constants, never of content: every part is bounded.
 */
static size_t append(char *dst, size_t size, size_t at, const char *text)
{
    const size_t len = strlen(text);
    PAY_ASSERT(at + len < size);
    memcpy(dst + at, text, len + 1);
    return at + len;
}

static void decimal(char dst[DECIMAL_SIZE], int64_t value)
{
    char reversed[DECIMAL_SIZE];
    size_t len = 0;
    size_t at = 0;
    uint64_t rest = value < 0 ? UINT64_C(0) - (uint64_t)value : (uint64_t)value;

    do {
        reversed[len++] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (value < 0) {
        dst[at++] = '-';
    }
    while (len > 0) {
        dst[at++] = reversed[--len];
    }
    dst[at] = 0;
}

static bool is_crockford(char c)
{
    return c != 0 && strchr("0123456789ABCDEFGHJKMNPQRSTVWXYZ", c) != NULL;
}

bool pay_id_is_payment(struct pay_str text)
{
    if (text.ptr == NULL || text.len != PAYMENT_ID_LEN || text.ptr[0] < '0' || text.ptr[0] > '7') {
        return false;
    }
    for (size_t i = 1; i < text.len; i++) {
        if (!is_crockford(text.ptr[i])) {
            return false;
        }
    }
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool pay_id_is_action(struct pay_str text)
{
    if (text.ptr == NULL || text.len != ACTION_ID_LEN ||
        !pay_id_is_payment((struct pay_str){text.ptr, PAYMENT_ID_LEN})) {
        return false;
    }
    const char *tail = text.ptr + PAYMENT_ID_LEN;
    const bool is_letter = tail[0] == 'A' || tail[0] == 'C' || tail[0] == 'R' || tail[0] == 'D';

    return is_letter && is_digit(tail[1]) && is_digit(tail[2]) &&
           !(tail[1] == '0' && tail[2] == '0');
}

void pay_id_action(char dst[PAY_ACTION_ID_SIZE], const char *payment_id, char letter, int number)
{
    PAY_ASSERT(number >= 1 && number <= PAY_ATTEMPTS_MAX);
    PAY_ASSERT(strlen(payment_id) == PAYMENT_ID_LEN);
    memcpy(dst, payment_id, PAYMENT_ID_LEN);
    dst[PAYMENT_ID_LEN] = letter;
    dst[PAYMENT_ID_LEN + 1] = (char)('0' + number / 10);
    dst[PAYMENT_ID_LEN + 2] = (char)('0' + number % 10);
    dst[ACTION_ID_LEN] = 0;
}

void pay_id_payment_of(char dst[PAY_PAYMENT_ID_SIZE], const char *action_id)
{
    PAY_ASSERT(strlen(action_id) >= PAYMENT_ID_LEN);
    memcpy(dst, action_id, PAYMENT_ID_LEN);
    dst[PAYMENT_ID_LEN] = 0;
}

void pay_id_job(char dst[PAY_JOB_ID_SIZE], const char *action_id, enum pay_job_kind kind, int n)
{
    char number[DECIMAL_SIZE];
    size_t at = append(dst, PAY_JOB_ID_SIZE, 0, action_id);

    at = append(dst, PAY_JOB_ID_SIZE, at, ".");
    at = append(dst, PAY_JOB_ID_SIZE, at, pay_job_kind_name(kind));
    if (n > 1 || kind == PAY_JOB_CONFIRM) {
        decimal(number, n);
        at = append(dst, PAY_JOB_ID_SIZE, at, ".");
        (void)append(dst, PAY_JOB_ID_SIZE, at, number);
    }
}

bool pay_id_job_kind(struct pay_str job_id, enum pay_job_kind *ret_kind)
{
    if (job_id.ptr == NULL || job_id.len <= ACTION_ID_LEN + 1 || job_id.ptr[ACTION_ID_LEN] != '.' ||
        !pay_id_is_action((struct pay_str){job_id.ptr, ACTION_ID_LEN})) {
        return false;
    }
    struct pay_str kind = {job_id.ptr + ACTION_ID_LEN + 1, job_id.len - ACTION_ID_LEN - 1};
    const char *point = memchr(kind.ptr, '.', kind.len);
    if (point != NULL) {
        kind.len = (size_t)(point - kind.ptr);
    }
    return pay_job_kind_parse(kind, ret_kind);
}

void pay_id_query_by_version(char dst[PAY_JOB_ID_SIZE], const char *action_id, int64_t version)
{
    char number[DECIMAL_SIZE];
    size_t at = append(dst, PAY_JOB_ID_SIZE, 0, action_id);

    decimal(number, version);
    at = append(dst, PAY_JOB_ID_SIZE, at, ".QUERY.v");
    (void)append(dst, PAY_JOB_ID_SIZE, at, number);
}

void pay_id_query_by_due(char dst[PAY_JOB_ID_SIZE], const char *action_id, int64_t due_us)
{
    char number[DECIMAL_SIZE];
    size_t at = append(dst, PAY_JOB_ID_SIZE, 0, action_id);

    decimal(number, due_us / 1000);
    at = append(dst, PAY_JOB_ID_SIZE, at, ".QUERY.");
    (void)append(dst, PAY_JOB_ID_SIZE, at, number);
}

static void hash_hex(char dst[HASH_HEX_LEN + 1], uint64_t hash)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < HASH_HEX_LEN; i++) {
        dst[i] = digits[(hash >> (60 - 4 * i)) & 0xF];
    }
    dst[HASH_HEX_LEN] = 0;
}

static uint64_t hash_text(uint64_t seed, const char *text, size_t len)
{
    return pay_hash_fnv1a(seed, (struct pay_bytes){(const uint8_t *)text, len});
}

void pay_id_cause_at(char dst[PAY_CAUSE_SIZE + 24], const char *cause, int64_t version)
{
    char number[DECIMAL_SIZE];
    size_t at = append(dst, PAY_CAUSE_SIZE + 24, 0, cause);

    decimal(number, version);
    at = append(dst, PAY_CAUSE_SIZE + 24, at, "#v");
    (void)append(dst, PAY_CAUSE_SIZE + 24, at, number);
}

void pay_id_shorten(char *dst, size_t size, struct pay_str text)
{
    PAY_ASSERT(size > HASH_HEX_LEN + 1);
    if (text.ptr == NULL || text.len < size) {
        (void)pay_str_copy(dst, size, text); /* Absent: "". */
        return;
    }
    const size_t kept = size - 1 - HASH_HEX_LEN;
    memcpy(dst, text.ptr, kept);
    hash_hex(dst + kept, hash_text(PAY_FNV_START, text.ptr, text.len));
}

void pay_id_cause(char dst[PAY_CAUSE_SIZE], struct pay_str cause)
{
    pay_id_shorten(dst, PAY_CAUSE_SIZE, cause);
}

void pay_id_fact(char dst[PAY_EVENT_ID_SIZE], enum pay_fact_type type, const char *aggregate_id,
                 const char *cause)
{
    const char *type_name = pay_fact_type_name(type);
    const size_t room = PAY_EVENT_ID_SIZE - strlen(type_name) - HASH_HEX_LEN - 3;
    const size_t aggregate_len = strlen(aggregate_id);
    const size_t kept = aggregate_len < room ? aggregate_len : room;
    uint64_t hash = hash_text(PAY_FNV_START, cause, strlen(cause));
    char hex[HASH_HEX_LEN + 1];

    /* A caller's command id may be longer than an id of ours: what does not fit is still told apart
     * by the hash. */
    if (kept < aggregate_len) {
        hash = hash_text(hash, aggregate_id, aggregate_len);
    }
    hash_hex(hex, hash);
    size_t at = append(dst, PAY_EVENT_ID_SIZE, 0, type_name);
    at = append(dst, PAY_EVENT_ID_SIZE, at, "/");
    memcpy(dst + at, aggregate_id, kept);
    at += kept;
    dst[at] = 0;
    at = append(dst, PAY_EVENT_ID_SIZE, at, "/");
    (void)append(dst, PAY_EVENT_ID_SIZE, at, hex);
}
