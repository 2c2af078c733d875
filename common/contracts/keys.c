/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/keys.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/banned.h"

/* Text being put together in the caller's array. */
struct key {
    char *dst;
    size_t size;
    size_t len;
    bool failed;
};

static struct key start(char *dst, size_t size)
{
    dst[0] = '\0';
    return (struct key){.dst = dst, .size = size};
}

static void add_char(struct key *key, char c)
{
    if (key->failed || key->len + 1 >= key->size) {
        key->failed = true;
        return;
    }
    key->dst[key->len++] = c;
}

/* A NUL would end the key early: two facts could then share it. */
static void add_text(struct key *key, struct pay_str text)
{
    for (size_t i = 0; text.ptr != NULL && i < text.len; i++) {
        key->failed = key->failed || text.ptr[i] == '\0';
        add_char(key, text.ptr[i]);
    }
}

static void add_needed(struct key *key, struct pay_str text)
{
    key->failed = key->failed || text.ptr == NULL || text.len == 0;
    add_text(key, text);
}

static void add_number(struct key *key, int64_t value)
{
    char text[24];
    const int len = snprintf(text, sizeof text, "%" PRId64, value);
    add_text(key, (struct pay_str){text, (size_t)len});
}

static void add_digest(struct key *key, const uint8_t sha256[PAY_SHA256_BYTES])
{
    char hex[2 * PAY_SHA256_BYTES + 1];
    pay_hex_encode((struct pay_bytes){sha256, PAY_SHA256_BYTES}, hex);
    add_text(key, pay_str_of(hex));
}

static void add_numbered(struct key *key, int64_t value)
{
    add_char(key, ':');
    add_number(key, value);
}

static bool finish(struct key *key)
{
    key->dst[key->failed ? 0 : key->len] = '\0';
    return !key->failed;
}

bool pay_transport_key_event(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str psp_event_id)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_needed(&key, psp_event_id);
    return finish(&key);
}

bool pay_transport_key_digest(char dst[PAY_TRANSPORT_KEY_SIZE],
                              const uint8_t sha256[PAY_SHA256_BYTES], size_t index)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_digest(&key, sha256);
    add_numbered(&key, (int64_t)index);
    return finish(&key);
}

bool pay_transport_key_answer(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str job_id, int send_no,
                              size_t index)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_needed(&key, job_id);
    add_numbered(&key, send_no);
    if (index > 0) {
        add_numbered(&key, (int64_t)index);
    }
    return finish(&key);
}

bool pay_transport_key_local(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str job_id, int send_no,
                             enum pay_event_type type)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_needed(&key, job_id);
    add_numbered(&key, send_no);
    add_char(&key, ':');
    add_needed(&key, pay_str_of(pay_event_type_name(type)));
    return finish(&key);
}

bool pay_transport_key_deadline(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str kind,
                                struct pay_str aggregate_id, int64_t due_at_us)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_needed(&key, kind);
    add_char(&key, ':');
    add_needed(&key, aggregate_id);
    add_numbered(&key, due_at_us);
    return finish(&key);
}

bool pay_transport_key_statement(char dst[PAY_TRANSPORT_KEY_SIZE],
                                 const uint8_t sha256[PAY_SHA256_BYTES], size_t line)
{
    return pay_transport_key_digest(dst, sha256, line);
}

bool pay_transport_key_poison(char dst[PAY_TRANSPORT_KEY_SIZE], struct pay_str topic, int partition,
                              int64_t offset)
{
    struct key key = start(dst, PAY_TRANSPORT_KEY_SIZE);
    add_needed(&key, topic);
    add_numbered(&key, partition);
    add_numbered(&key, offset);
    return finish(&key);
}

/* '|' parts the key, so it is escaped inside a part, and the escape too. */
static void add_part(struct key *key, struct pay_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (c == '|' || c == '%') {
            add_text(key, c == '|' ? PAY_STR("%7C") : PAY_STR("%25"));
        } else {
            key->failed = key->failed || c == '\0';
            add_char(key, c);
        }
    }
}

static struct pay_str first_of(struct pay_str a, struct pay_str b)
{
    return a.ptr != NULL && a.len > 0 ? a : b;
}

bool pay_business_key(char dst[PAY_BUSINESS_KEY_SIZE], const struct pay_event *event)
{
    struct key key = start(dst, PAY_BUSINESS_KEY_SIZE);

    add_part(&key, first_of(event->provider_payment_id, event->merchant_request_no));
    add_char(&key, '|');
    add_part(&key, first_of(event->provider_action_id, event->action_id));
    add_char(&key, '|');
    add_part(&key, pay_str_of(pay_event_type_name(event->type)));
    add_char(&key, '|');
    add_part(&key, event->normalized_result);
    return finish(&key);
}
