/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ingest/keys.h"

#include <pthread.h>

#include "common/base/mem.h"
#include "common/crypto/aead.h"
#include "common/crypto/keyring_file.h"
#include "common/crypto/sha256.h"

#include "common/base/banned.h"

#define SEALED_BYTES_MAX ((size_t)2 * 1024 * 1024)

struct pay_keys {
    pthread_rwlock_t lock;
    struct pay_keyring *ring;
    struct pay_keyring_file file;
};

enum pay_status pay_keys_open(const char *path, struct pay_keys **ret_keys, struct pay_err *err)
{
    struct pay_keys *keys = pay_mem_new(1, sizeof *keys);
    if (keys == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, "keyring", "out of memory");
    }
    (void)pthread_rwlock_init(&keys->lock, NULL); /* Cannot fail with default attributes here. */
    const enum pay_status status = pay_keyring_file_open(&keys->file, path, &keys->ring, err);
    if (status != PAY_OK) {
        (void)pay_keys_close(keys);
        return status;
    }
    *ret_keys = keys;
    return PAY_OK;
}

struct pay_keys *pay_keys_close(struct pay_keys *keys)
{
    if (keys != NULL) {
        keys->ring = pay_keyring_free(keys->ring);
        (void)pthread_rwlock_destroy(&keys->lock);
        pay_mem_free(keys);
    }
    return NULL;
}

enum pay_status pay_keys_refresh(struct pay_keys *keys, bool *ret_renewed, struct pay_err *err)
{
    struct pay_keyring *ring = NULL;
    const enum pay_status status = pay_keyring_file_next(&keys->file, keys->ring, &ring, err);
    *ret_renewed = ring != NULL;
    if (ring == NULL) {
        return status;
    }
    (void)pthread_rwlock_wrlock(&keys->lock);
    struct pay_keyring *old = keys->ring;
    keys->ring = ring;
    (void)pthread_rwlock_unlock(&keys->lock);
    (void)pay_keyring_free(old);
    return PAY_OK;
}

static struct pay_bytes as_bytes(struct pay_str text)
{
    return (struct pay_bytes){(const uint8_t *)text.ptr, text.len};
}

enum pay_status pay_keys_seal(struct pay_keys *keys, struct pay_str bound_to,
                              struct pay_bytes plain, struct pay_arena *arena,
                              struct pay_sealed *ret_sealed, struct pay_err *err)
{
    struct pay_buf out = pay_buf_make(SEALED_BYTES_MAX);
    struct pay_str key_id = {NULL, 0};
    (void)pthread_rwlock_rdlock(&keys->lock);
    enum pay_status status =
        pay_keyring_seal(keys->ring, as_bytes(bound_to), plain, &key_id, &out, err);
    struct pay_sealed sealed = {.ciphertext = {NULL, 0}};
    if (status == PAY_OK) {
        sealed.key_id = pay_arena_str(arena, key_id); /* The id belongs to the ring. */
    }
    (void)pthread_rwlock_unlock(&keys->lock);
    if (status == PAY_OK) {
        sealed.ciphertext = pay_arena_bytes(arena, pay_buf_bytes(&out));
        sealed.bound_to = pay_arena_str(arena, bound_to);
        if (sealed.key_id.ptr == NULL || sealed.ciphertext.ptr == NULL ||
            sealed.bound_to.ptr == NULL) {
            status = pay_err_set(err, PAY_RETRY, 0, "seal", "arena full");
        } else {
            *ret_sealed = sealed;
        }
    }
    pay_buf_free(&out);
    return status;
}

enum pay_status pay_keys_open_sealed(struct pay_keys *keys, const struct pay_sealed *sealed,
                                     struct pay_arena *arena, struct pay_bytes *ret_plain,
                                     struct pay_err *err)
{
    struct pay_buf out = pay_buf_make(SEALED_BYTES_MAX);
    (void)pthread_rwlock_rdlock(&keys->lock);
    enum pay_status status = pay_keyring_open(
        keys->ring, sealed->key_id, as_bytes(sealed->bound_to), sealed->ciphertext, &out, err);
    (void)pthread_rwlock_unlock(&keys->lock);
    if (status == PAY_OK) {
        const struct pay_bytes plain = pay_arena_bytes(arena, pay_buf_bytes(&out));
        if (plain.ptr == NULL) {
            status = pay_err_set(err, PAY_RETRY, 0, "open", "arena full");
        } else {
            *ret_plain = plain;
        }
    }
    if (out.data != NULL) {
        pay_mem_wipe(out.data, out.len);
    }
    pay_buf_free(&out);
    return status;
}

enum pay_status pay_keys_seal_evidence(struct pay_keys *keys, struct pay_payment_input *input,
                                       struct pay_bytes body, struct pay_str verified_by,
                                       struct pay_arena *arena, struct pay_err *err)
{
    const bool refused = input->kind == PAY_WIRE_REFUSED_NOTIFICATION;
    const struct pay_str psp = refused ? input->refused.psp : input->event.psp;
    const struct pay_str account = refused ? input->refused.psp_account : input->event.psp_account;
    const struct pay_str bound_to =
        pay_arena_printf(arena, "%s/%s/%s", psp.ptr, account.ptr, input->transport_key.ptr);
    uint8_t *digest = pay_arena_alloc(arena, PAY_SHA256_BYTES);
    if (bound_to.ptr == NULL || digest == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "seal", "arena full");
    }
    struct pay_sealed sealed;
    const enum pay_status status = pay_keys_seal(keys, bound_to, body, arena, &sealed, err);
    if (status == PAY_OK) {
        pay_sha256(body, digest);
        input->evidence = (struct pay_sealed_evidence){
            sealed.ciphertext, sealed.key_id, {digest, PAY_SHA256_BYTES}, verified_by};
    }
    return status;
}
