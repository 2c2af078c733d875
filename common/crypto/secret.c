/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/secret.h"

#include "common/base/file.h"
#include "common/base/mem.h"

#include <string.h>

#include "common/base/banned.h"

#define SPACE_MAX 256u /* White space behind a secret that is still trimmed. */

struct pay_secret {
    size_t len;
    uint8_t bytes[PAY_SECRET_MAX];
};

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

enum pay_status pay_secret_of(const char *name, struct pay_bytes bytes,
                              struct pay_secret **ret_secret, struct pay_err *err)
{
    static const char op[] = "load secret";
    size_t len = bytes.len;

    while (len > 0 && is_space(bytes.ptr[len - 1])) {
        len--;
    }
    if (len == 0) {
        return pay_err_set(err, PAY_FATAL, 0, op, "\"%.100s\" is empty", name);
    }
    if (len > PAY_SECRET_MAX) {
        return pay_err_set(err, PAY_FATAL, 0, op, "\"%.100s\" is longer than %d bytes", name,
                           PAY_SECRET_MAX);
    }
    struct pay_secret *secret = pay_mem_new(1, sizeof *secret);
    if (secret == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op, "out of memory");
    }
    memcpy(secret->bytes, bytes.ptr, len);
    secret->len = len;
    *ret_secret = secret;
    return PAY_OK;
}

enum pay_status pay_secret_load(const char *path, struct pay_secret **ret_secret,
                                struct pay_err *err)
{
    uint8_t bytes[PAY_SECRET_MAX + SPACE_MAX];
    size_t len = 0;

    enum pay_status status = pay_file_read(path, bytes, sizeof bytes, &len, err);
    if (status == PAY_OK) {
        status = pay_secret_of(path, (struct pay_bytes){bytes, len}, ret_secret, err);
    }
    pay_mem_wipe(bytes, sizeof bytes);
    return status;
}

struct pay_bytes pay_secret_bytes(const struct pay_secret *secret)
{
    return (struct pay_bytes){secret->bytes, secret->len};
}

struct pay_secret *pay_secret_free(struct pay_secret *secret)
{
    pay_mem_wipe(secret, sizeof *secret);
    return pay_mem_free(secret);
}
