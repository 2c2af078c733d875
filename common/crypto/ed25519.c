/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/ed25519.h"

#include "common/base/assert.h"
#include "common/base/file.h"
#include "common/base/mem.h"

#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "common/base/banned.h"

#define KEY_TYPE "ED25519"

/* Two types around one handle: a public key cannot be handed in where a private one is needed. */
struct pay_ed25519_private {
    EVP_PKEY *pkey;
};

struct pay_ed25519_public {
    EVP_PKEY *pkey;
};

/* A daemon has nobody to ask: a key with a passphrase is refused, never prompted for. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the signature is OpenSSL's. */
static int no_passphrase(char *buf, int size, int is_writing, void *user)
{
    (void)buf;
    (void)size;
    (void)is_writing;
    (void)user;
    return -1;
}

static EVP_PKEY *read_pem(struct pay_str pem, bool is_private)
{
    EVP_PKEY *pkey = NULL;
    if (pem.ptr == NULL || pem.len > PAY_ED25519_PEM_MAX) {
        return NULL;
    }
    BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
    if (bio != NULL) {
        pkey = is_private ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
                          : PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL);
    }
    BIO_free(bio);
    ERR_clear_error();
    if (pkey != NULL && EVP_PKEY_is_a(pkey, KEY_TYPE) != 1) {
        EVP_PKEY_free(pkey);
        pkey = NULL;
    }
    return pkey;
}

enum pay_status pay_ed25519_private_parse(struct pay_str pem, struct pay_ed25519_private **ret_key,
                                          struct pay_err *err)
{
    static const char op[] = "read private key";
    struct pay_ed25519_private *key = pay_mem_new(1, sizeof *key);

    if (key == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op, "out of memory");
    }
    key->pkey = read_pem(pem, true);
    if (key->pkey == NULL) {
        (void)pay_mem_free(key);
        return pay_err_set(err, PAY_FATAL, 0, op, "not the PEM of an Ed25519 private key");
    }
    *ret_key = key;
    return PAY_OK;
}

enum pay_status pay_ed25519_public_parse(struct pay_str pem, struct pay_ed25519_public **ret_key,
                                         struct pay_err *err)
{
    static const char op[] = "read public key";
    struct pay_ed25519_public *key = pay_mem_new(1, sizeof *key);

    if (key == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op, "out of memory");
    }
    key->pkey = read_pem(pem, false);
    if (key->pkey == NULL) {
        (void)pay_mem_free(key);
        return pay_err_set(err, PAY_FATAL, 0, op, "not the PEM of an Ed25519 public key");
    }
    *ret_key = key;
    return PAY_OK;
}

enum pay_status pay_ed25519_private_load(const char *path, struct pay_ed25519_private **ret_key,
                                         struct pay_err *err)
{
    char pem[PAY_ED25519_PEM_MAX];
    size_t len = 0;

    enum pay_status status = pay_file_read(path, pem, sizeof pem, &len, err);
    if (status == PAY_OK &&
        pay_ed25519_private_parse((struct pay_str){pem, len}, ret_key, NULL) != PAY_OK) {
        status = pay_err_set(err, PAY_FATAL, 0, "read private key",
                             "\"%.100s\" is not an Ed25519 private key in PEM", path);
    }
    pay_mem_wipe(pem, sizeof pem);
    return status;
}

enum pay_status pay_ed25519_public_load(const char *path, struct pay_ed25519_public **ret_key,
                                        struct pay_err *err)
{
    char pem[PAY_ED25519_PEM_MAX];
    size_t len = 0;

    enum pay_status status = pay_file_read(path, pem, sizeof pem, &len, err);
    if (status == PAY_OK &&
        pay_ed25519_public_parse((struct pay_str){pem, len}, ret_key, NULL) != PAY_OK) {
        status = pay_err_set(err, PAY_FATAL, 0, "read public key",
                             "\"%.100s\" is not an Ed25519 public key in PEM", path);
    }
    return status;
}

struct pay_ed25519_private *pay_ed25519_private_free(struct pay_ed25519_private *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey); /* Cleanses the private bytes. */
    }
    return pay_mem_free(key);
}

struct pay_ed25519_public *pay_ed25519_public_free(struct pay_ed25519_public *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey);
    }
    return pay_mem_free(key);
}

/* Append what a PEM writer wrote; freeing the BIO cleanses it. */
static void take_bio(BIO *bio, struct pay_buf *out)
{
    char *text = NULL;
    const long len = BIO_get_mem_data(bio, &text);
    pay_buf_add(out, text, len > 0 ? (size_t)len : 0);
}

enum pay_status pay_ed25519_generate(struct pay_buf *private_pem, struct pay_buf *public_pem,
                                     struct pay_err *err)
{
    EVP_PKEY *pkey = EVP_PKEY_Q_keygen(NULL, NULL, KEY_TYPE);
    BIO *private_bio = BIO_new(BIO_s_mem());
    BIO *public_bio = BIO_new(BIO_s_mem());

    const bool is_fine =
        pkey != NULL && private_bio != NULL && public_bio != NULL &&
        PEM_write_bio_PKCS8PrivateKey(private_bio, pkey, NULL, NULL, 0, NULL, NULL) == 1 &&
        PEM_write_bio_PUBKEY(public_bio, pkey) == 1;
    if (is_fine) {
        take_bio(private_bio, private_pem);
        take_bio(public_bio, public_pem);
    }
    BIO_free(private_bio);
    BIO_free(public_bio);
    EVP_PKEY_free(pkey);
    ERR_clear_error();
    if (!is_fine || private_pem->failed || public_pem->failed) {
        return pay_err_set(err, PAY_FATAL, 0, "generate key pair", "out of memory");
    }
    return PAY_OK;
}

enum pay_status pay_ed25519_generate_files(const char *private_path, const char *public_path,
                                           struct pay_err *err)
{
    struct pay_buf private_pem = pay_buf_make(PAY_ED25519_PEM_MAX);
    struct pay_buf public_pem = pay_buf_make(PAY_ED25519_PEM_MAX);

    enum pay_status status = pay_ed25519_generate(&private_pem, &public_pem, err);
    if (status == PAY_OK) {
        status = pay_file_write(private_path, pay_buf_bytes(&private_pem), true, err);
    }
    if (status == PAY_OK) {
        status = pay_file_write(public_path, pay_buf_bytes(&public_pem), true, err);
    }
    pay_mem_wipe(private_pem.data, private_pem.len);
    pay_buf_free(&private_pem);
    pay_buf_free(&public_pem);
    return status;
}

void pay_ed25519_sign(const struct pay_ed25519_private *key, struct pay_bytes message,
                      uint8_t ret_signature[PAY_ED25519_SIGNATURE_BYTES])
{
    static const uint8_t none[1] = {0};
    size_t len = PAY_ED25519_SIGNATURE_BYTES;

    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    const bool is_fine = ctx != NULL &&
                         EVP_DigestSignInit_ex(ctx, NULL, NULL, NULL, NULL, key->pkey, NULL) == 1 &&
                         EVP_DigestSign(ctx, ret_signature, &len,
                                        message.ptr == NULL ? none : message.ptr, message.len) == 1;
    EVP_MD_CTX_free(ctx);
    PAY_ASSERT(is_fine && len == PAY_ED25519_SIGNATURE_BYTES);
}

bool pay_ed25519_verify(const struct pay_ed25519_public *key, struct pay_bytes message,
                        struct pay_bytes signature)
{
    static const uint8_t none[1] = {0};

    if (signature.ptr == NULL || signature.len != PAY_ED25519_SIGNATURE_BYTES) {
        return false;
    }
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    const bool is_ready =
        ctx != NULL && EVP_DigestVerifyInit_ex(ctx, NULL, NULL, NULL, NULL, key->pkey, NULL) == 1;
    const bool is_good =
        is_ready && EVP_DigestVerify(ctx, signature.ptr, signature.len,
                                     message.ptr == NULL ? none : message.ptr, message.len) == 1;
    EVP_MD_CTX_free(ctx);
    PAY_ASSERT(is_ready); /* Out of memory must not read as "forged". */
    ERR_clear_error();
    return is_good;
}
