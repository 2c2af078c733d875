/* SPDX-License-Identifier: Apache-2.0 */
#include "common/crypto/keyring_file.h"

#include "common/base/file.h"

#include "common/base/banned.h"

enum pay_status pay_keyring_file_open(struct pay_keyring_file *file, const char *path,
                                      struct pay_keyring **ret_ring, struct pay_err *err)
{
    if (!pay_str_copy(file->path, sizeof file->path, pay_str_of(path))) {
        return pay_err_set(err, PAY_FATAL, 0, "keyring", "path too long");
    }
    file->state = pay_file_state(file->path); /* A missing file is found by the load. */
    return pay_keyring_load(file->path, ret_ring, err);
}

enum pay_status pay_keyring_file_next(struct pay_keyring_file *file, const struct pay_keyring *ring,
                                      struct pay_keyring **ret_ring, struct pay_err *err)
{
    const uint64_t now = pay_file_state(file->path);
    struct pay_keyring *next = NULL;
    *ret_ring = NULL;
    if (now == 0 || now == file->state) {
        return PAY_OK;
    }
    file->state = now;
    const enum pay_status status = pay_keyring_load(file->path, &next, err);
    if (status == PAY_OK) {
        pay_keyring_continue(next, ring);
        *ret_ring = next;
    }
    return status;
}
