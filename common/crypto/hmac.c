/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/hmac.h"

#include "common/base/assert.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <threads.h>

#include "common/base/banned.h"

static EVP_MAC *hmac;
static once_flag hmac_once = ONCE_FLAG_INIT;

static void fetch(void)
{
    hmac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    PAY_ASSERT(hmac != NULL);
}

void pay_hmac_sha256_parts(struct pay_bytes key, const struct pay_bytes *parts, size_t count,
                           uint8_t ret_mac[PAY_HMAC_BYTES])
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_end(),
    };
    size_t len = 0;

    PAY_ASSERT(key.ptr != NULL && key.len > 0);
    call_once(&hmac_once, fetch);
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);
    bool is_fine = ctx != NULL && EVP_MAC_init(ctx, key.ptr, key.len, params) == 1;
    for (size_t i = 0; is_fine && i < count; i++) {
        is_fine = parts[i].len == 0 || EVP_MAC_update(ctx, parts[i].ptr, parts[i].len) == 1;
    }
    is_fine = is_fine && EVP_MAC_final(ctx, ret_mac, &len, PAY_HMAC_BYTES) == 1;
    EVP_MAC_CTX_free(ctx);
    PAY_ASSERT(is_fine && len == PAY_HMAC_BYTES);
}

void pay_hmac_sha256(struct pay_bytes key, struct pay_bytes data, uint8_t ret_mac[PAY_HMAC_BYTES])
{
    pay_hmac_sha256_parts(key, &data, 1, ret_mac);
}

bool pay_mac_eq(struct pay_bytes a, struct pay_bytes b)
{
    return a.ptr != NULL && b.ptr != NULL && a.len > 0 && a.len == b.len &&
           CRYPTO_memcmp(a.ptr, b.ptr, a.len) == 0;
}
