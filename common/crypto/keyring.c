/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/keyring.h"

#include "common/base/assert.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/crypto/aead.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "common/base/banned.h"

#define FORMAT_LINE "payfact-keyring-1"
#define HEX_LEN (2 * PAY_AEAD_KEY_BYTES)

struct data_key {
    char id[PAY_KEYRING_ID_MAX];
    uint8_t bytes[PAY_AEAD_KEY_BYTES];
};

struct pay_keyring {
    struct data_key keys[PAY_KEYRING_KEYS_MAX];
    size_t count;
    size_t current;
    bool has_current;
    _Atomic uint64_t seals;
    uint64_t seals_warn;
    uint64_t seals_max;
};

static const struct data_key *find(const struct pay_keyring *ring, struct pay_str id)
{
    for (size_t i = 0; i < ring->count; i++) {
        if (pay_str_eq_c(id, ring->keys[i].id)) {
            return &ring->keys[i];
        }
    }
    return NULL;
}

static bool is_id(struct pay_str id)
{
    for (size_t i = 0; i < id.len; i++) {
        const char c = id.ptr[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-')) {
            return false;
        }
    }
    return id.len > 0 && id.len < PAY_KEYRING_ID_MAX;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct pay_str cut(struct pay_str *rest, size_t len)
{
    const struct pay_str piece = {rest->ptr, len};
    rest->ptr += len;
    rest->len -= len;
    return piece;
}

static struct pay_str next_line(struct pay_str *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->ptr[len] != '\n') {
        len++;
    }
    const struct pay_str line = cut(rest, len);
    (void)cut(rest, rest->len > 0 ? 1 : 0); /* The line's end. */
    return line;
}

static struct pay_str next_word(struct pay_str *rest)
{
    size_t len = 0;
    while (rest->len > 0 && is_blank(rest->ptr[0])) {
        (void)cut(rest, 1);
    }
    while (len < rest->len && !is_blank(rest->ptr[len])) {
        len++;
    }
    return cut(rest, len);
}

/* @return NULL when the line is fine, else what is wrong with it. */
static const char *take_line(struct pay_keyring *ring, struct pay_str line)
{
    const struct pay_str word = next_word(&line);
    const struct pay_str id = next_word(&line);
    const struct pay_str hex = next_word(&line);
    const bool is_current = pay_str_eq_c(word, "current");

    if (word.len == 0 || word.ptr[0] == '#') {
        return NULL;
    }
    if (!is_current && !pay_str_eq_c(word, "key")) {
        return "begins with neither \"current\" nor \"key\"";
    }
    if (!is_id(id)) {
        return "has no valid key id";
    }
    if (find(ring, id) != NULL) {
        return "repeats a key id";
    }
    if (is_current && ring->has_current) {
        return "is a second current key";
    }
    if (ring->count == PAY_KEYRING_KEYS_MAX) {
        return "is one key too many";
    }
    struct data_key *key = &ring->keys[ring->count];
    if (!pay_hex_decode(hex, key->bytes, sizeof key->bytes) || next_word(&line).len > 0) {
        return "does not end with 64 hex digits";
    }
    const bool is_copied = pay_str_copy(key->id, sizeof key->id, id);
    PAY_ASSERT(is_copied);
    if (is_current) {
        ring->current = ring->count;
        ring->has_current = true;
    }
    ring->count++;
    return NULL;
}

static enum pay_status fill(struct pay_keyring *ring, struct pay_str text, struct pay_err *err)
{
    static const char op[] = "read keyring";
    const struct pay_str format = next_line(&text);

    if (!pay_str_eq_c(format, FORMAT_LINE)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "first line is not \"%s\"", FORMAT_LINE);
    }
    for (size_t number = 2; text.len > 0; number++) {
        const char *wrong = take_line(ring, next_line(&text));
        if (wrong != NULL) {
            return pay_err_set(err, PAY_FATAL, 0, op, "line %zu %s", number, wrong);
        }
    }
    if (!ring->has_current) {
        return pay_err_set(err, PAY_FATAL, 0, op, "no key is current");
    }
    return PAY_OK;
}

enum pay_status pay_keyring_parse(struct pay_str text, struct pay_keyring **ret_ring,
                                  struct pay_err *err)
{
    struct pay_keyring *ring = pay_mem_new(1, sizeof *ring);

    if (ring == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "read keyring", "out of memory");
    }
    ring->seals_warn = PAY_KEYRING_SEALS_WARN;
    ring->seals_max = PAY_KEYRING_SEALS_MAX;
    const enum pay_status status = fill(ring, text, err);
    if (status != PAY_OK) {
        (void)pay_keyring_free(ring);
        return status;
    }
    *ret_ring = ring;
    return PAY_OK;
}

enum pay_status pay_keyring_load(const char *path, struct pay_keyring **ret_ring,
                                 struct pay_err *err)
{
    char text[PAY_KEYRING_FILE_MAX];
    struct pay_err why = {0};
    size_t len = 0;

    enum pay_status status = pay_file_read(path, text, sizeof text, &len, err);
    if (status == PAY_OK &&
        pay_keyring_parse((struct pay_str){text, len}, ret_ring, &why) != PAY_OK) {
        status = pay_err_set(err, PAY_FATAL, 0, why.op, "\"%.60s\": %.80s", path, why.text);
    }
    pay_mem_wipe(text, sizeof text);
    return status;
}

struct pay_keyring *pay_keyring_free(struct pay_keyring *ring)
{
    pay_mem_wipe(ring, sizeof *ring);
    return pay_mem_free(ring);
}

/* Take one of the messages that the key may still seal; never more than the maximum at once. */
static bool take_seal(struct pay_keyring *ring)
{
    uint64_t seals = atomic_load(&ring->seals);
    while (seals < ring->seals_max) {
        if (atomic_compare_exchange_weak(&ring->seals, &seals, seals + 1)) {
            return true;
        }
    }
    return false;
}

enum pay_status pay_keyring_seal(struct pay_keyring *ring, struct pay_bytes aad,
                                 struct pay_bytes plain, struct pay_str *ret_key_id,
                                 struct pay_buf *out, struct pay_err *err)
{
    const struct data_key *key = &ring->keys[ring->current];

    if (!take_seal(ring)) {
        return pay_err_set(err, PAY_FATAL, 0, "seal",
                           "key \"%s\" has sealed %" PRIu64 " messages: rotate it", key->id,
                           ring->seals_max);
    }
    const enum pay_status status = pay_aead_seal(key->bytes, aad, plain, out, err);
    if (status == PAY_OK) {
        *ret_key_id = pay_str_of(key->id);
    }
    return status;
}

enum pay_status pay_keyring_open(const struct pay_keyring *ring, struct pay_str key_id,
                                 struct pay_bytes aad, struct pay_bytes sealed, struct pay_buf *out,
                                 struct pay_err *err)
{
    const struct data_key *key = find(ring, key_id);

    if (key == NULL) {
        return pay_err_set(err, PAY_REJECT, 0, "open sealed", "the keyring has no key \"%.*s\"",
                           (int)(key_id.len < PAY_KEYRING_ID_MAX ? key_id.len : PAY_KEYRING_ID_MAX),
                           key_id.ptr == NULL ? "" : key_id.ptr);
    }
    return pay_aead_open(key->bytes, aad, sealed, out, err);
}

struct pay_str pay_keyring_current(const struct pay_keyring *ring)
{
    return pay_str_of(ring->keys[ring->current].id);
}

void pay_keyring_limit(struct pay_keyring *ring, uint64_t warn, uint64_t max)
{
    PAY_ASSERT(warn > 0 && warn <= max && max <= ring->seals_max);
    ring->seals_warn = warn;
    ring->seals_max = max;
}

void pay_keyring_continue(struct pay_keyring *next, const struct pay_keyring *old)
{
    const struct data_key *to = &next->keys[next->current];
    const struct data_key *from = &old->keys[old->current];
    next->seals_warn = old->seals_warn;
    next->seals_max = old->seals_max;
    if (strcmp(to->id, from->id) == 0 && memcmp(to->bytes, from->bytes, sizeof to->bytes) == 0) {
        atomic_store(&next->seals, atomic_load(&old->seals));
    }
}

uint64_t pay_keyring_seals(const struct pay_keyring *ring)
{
    return atomic_load(&ring->seals);
}

bool pay_keyring_wants_rotation(const struct pay_keyring *ring)
{
    return pay_keyring_seals(ring) >= ring->seals_warn;
}

static void print_key(const char *word, const struct data_key *key, struct pay_buf *out)
{
    char hex[HEX_LEN + 1];

    pay_hex_encode((struct pay_bytes){key->bytes, sizeof key->bytes}, hex);
    pay_buf_printf(out, "%s %s %s\n", word, key->id, hex);
    pay_mem_wipe(hex, sizeof hex);
}

enum pay_status pay_keyring_generate(const struct pay_keyring *old, const char *id,
                                     struct pay_buf *out, struct pay_err *err)
{
    static const char op[] = "generate key";
    uint8_t memory[PAY_KEYRING_FILE_MAX];
    /* Lent memory: a growing buffer would leave copies of the keys behind in the heap. */
    struct pay_buf text = {.data = memory, .cap = sizeof memory, .max = sizeof memory - 1};
    struct data_key key = {0};

    if (!is_id(pay_str_of(id)) || !pay_str_copy(key.id, sizeof key.id, pay_str_of(id))) {
        return pay_err_set(err, PAY_FATAL, 0, op, "\"%.40s\" is no key id", id);
    }
    if (old != NULL && (find(old, pay_str_of(id)) != NULL || old->count == PAY_KEYRING_KEYS_MAX)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "\"%s\" is in the keyring, or it is full", id);
    }
    pay_mem_random(key.bytes, sizeof key.bytes);
    pay_buf_add_c(&text, FORMAT_LINE "\n");
    print_key("current", &key, &text);
    for (size_t i = 0; old != NULL && i < old->count; i++) {
        print_key("key    ", &old->keys[i], &text);
    }
    pay_buf_add(out, text.data, text.len);
    const bool is_whole = !text.failed && !out->failed;
    pay_mem_wipe(memory, sizeof memory);
    pay_mem_wipe(&key, sizeof key);
    return is_whole ? PAY_OK : pay_err_set(err, PAY_FATAL, 0, op, "no room for the keyring");
}
