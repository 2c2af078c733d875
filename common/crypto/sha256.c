/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/sha256.h"

#include "common/base/assert.h"

#include <openssl/evp.h>
#include <threads.h>

#include "common/base/banned.h"

static EVP_MD *sha256_md;
static once_flag sha256_once = ONCE_FLAG_INIT;

/* Fetched once: a fetch for each digest costs more than the digest of a short text. */
static void fetch(void)
{
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    PAY_ASSERT(sha256_md != NULL);
}

void pay_sha256_parts(const struct pay_bytes *parts, size_t count,
                      uint8_t ret_digest[PAY_SHA256_BYTES])
{
    call_once(&sha256_once, fetch);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool is_fine = ctx != NULL && EVP_DigestInit_ex2(ctx, sha256_md, NULL) == 1;

    for (size_t i = 0; is_fine && i < count; i++) {
        is_fine = EVP_DigestUpdate(ctx, parts[i].ptr, parts[i].len) == 1;
    }
    is_fine = is_fine && EVP_DigestFinal_ex(ctx, ret_digest, NULL) == 1;
    EVP_MD_CTX_free(ctx);
    PAY_ASSERT(is_fine);
}

void pay_sha256(struct pay_bytes data, uint8_t ret_digest[PAY_SHA256_BYTES])
{
    pay_sha256_parts(&data, 1, ret_digest);
}

void pay_sha256_hex(struct pay_bytes data, char ret_hex[PAY_SHA256_HEX])
{
    uint8_t digest[PAY_SHA256_BYTES];

    pay_sha256(data, digest);
    pay_hex_encode((struct pay_bytes){digest, sizeof digest}, ret_hex);
}
