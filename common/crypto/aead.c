/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/aead.h"

#include "common/base/assert.h"
#include "common/base/mem.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <threads.h>

#include "common/base/banned.h"

static EVP_CIPHER *gcm;
static once_flag gcm_once = ONCE_FLAG_INIT;

static void fetch(void)
{
    gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    PAY_ASSERT(gcm != NULL);
}

/* A context that has taken key, nonce and additional data. */
static EVP_CIPHER_CTX *start(const uint8_t *key, const uint8_t *nonce, struct pay_bytes aad,
                             int is_sealing)
{
    int len = 0;

    call_once(&gcm_once, fetch);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    PAY_ASSERT(ctx != NULL);
    const int ready = EVP_CipherInit_ex2(ctx, gcm, key, nonce, is_sealing, NULL);
    PAY_ASSERT(ready == 1);
    if (aad.len > 0) {
        const int taken = EVP_CipherUpdate(ctx, NULL, &len, aad.ptr, (int)aad.len);
        PAY_ASSERT(taken == 1);
    }
    return ctx;
}

enum pay_status pay_aead_seal(const uint8_t key[PAY_AEAD_KEY_BYTES], struct pay_bytes aad,
                              struct pay_bytes plain, struct pay_buf *out, struct pay_err *err)
{
    static const char op[] = "seal";
    int len = 0;
    int rest = 0;

    if (plain.len > PAY_AEAD_PLAIN_MAX || aad.len > PAY_AEAD_PLAIN_MAX) {
        return pay_err_set(err, PAY_REJECT, 0, op, "longer than %zu bytes", PAY_AEAD_PLAIN_MAX);
    }
    uint8_t *nonce = pay_buf_extend(out, plain.len + PAY_AEAD_OVERHEAD);
    if (nonce == NULL) {
        return pay_err_set(err, out->starved ? PAY_RETRY : PAY_REJECT, 0, op,
                           "no room for %zu bytes", plain.len);
    }
    uint8_t *text = nonce + PAY_AEAD_NONCE_BYTES;
    pay_mem_random(nonce, PAY_AEAD_NONCE_BYTES);
    EVP_CIPHER_CTX *ctx = start(key, nonce, aad, 1);
    const bool is_fine =
        (plain.len == 0 || EVP_EncryptUpdate(ctx, text, &len, plain.ptr, (int)plain.len) == 1) &&
        EVP_EncryptFinal_ex(ctx, text + len, &rest) == 1 &&
        (size_t)len + (size_t)rest == plain.len &&
        EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, PAY_AEAD_TAG_BYTES, text + plain.len) == 1;
    EVP_CIPHER_CTX_free(ctx);
    PAY_ASSERT(is_fine);
    return PAY_OK;
}

/* @return true when the tag is right; text then holds the plain bytes. */
static bool open_into(uint8_t *text, EVP_CIPHER_CTX *ctx, struct pay_bytes cipher)
{
    uint8_t tag[PAY_AEAD_TAG_BYTES]; /* A copy, because the call takes it without const. */
    int len = 0;
    int rest = 0;

    for (size_t i = 0; i < sizeof tag; i++) {
        tag[i] = cipher.ptr[cipher.len + i];
    }
    return EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, sizeof tag, tag) == 1 &&
           (cipher.len == 0 ||
            EVP_DecryptUpdate(ctx, text, &len, cipher.ptr, (int)cipher.len) == 1) &&
           EVP_DecryptFinal_ex(ctx, text + len, &rest) == 1 &&
           (size_t)len + (size_t)rest == cipher.len;
}

enum pay_status pay_aead_open(const uint8_t key[PAY_AEAD_KEY_BYTES], struct pay_bytes aad,
                              struct pay_bytes sealed, struct pay_buf *out, struct pay_err *err)
{
    static const char op[] = "open sealed";
    const size_t before = out->len;

    if (sealed.len < PAY_AEAD_OVERHEAD || aad.len > PAY_AEAD_PLAIN_MAX ||
        sealed.len > PAY_AEAD_PLAIN_MAX + PAY_AEAD_OVERHEAD) {
        return pay_err_set(err, PAY_REJECT, 0, op, "%zu bytes cannot be a sealed text", sealed.len);
    }
    const struct pay_bytes cipher = {sealed.ptr + PAY_AEAD_NONCE_BYTES,
                                     sealed.len - PAY_AEAD_OVERHEAD};
    uint8_t *text = pay_buf_extend(out, cipher.len);
    if (text == NULL) {
        return pay_err_set(err, out->starved ? PAY_RETRY : PAY_REJECT, 0, op,
                           "no room for %zu bytes", cipher.len);
    }
    EVP_CIPHER_CTX *ctx = start(key, sealed.ptr, aad, 0);
    const bool is_fine = open_into(text, ctx, cipher);
    EVP_CIPHER_CTX_free(ctx);
    if (!is_fine) {
        pay_mem_wipe(text, cipher.len);
        pay_buf_cut(out, before);
        ERR_clear_error();
        return pay_err_set(err, PAY_REJECT, 0, op, "key, additional data or sealed text differ");
    }
    return PAY_OK;
}
