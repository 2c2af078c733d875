/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/file.h"

#include "common/base/hash.h"
#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/banned.h"

static enum pay_status failed(struct pay_err *err, const char *op, const char *path)
{
    char text[48];
    const int code = errno;
    if (strerror_r(code, text, sizeof text) != 0) {
        text[0] = 0;
    }
    return pay_err_set(err, PAY_FATAL, code, op, "\"%.100s\": %s", path, text);
}

/* @return bytes, 0 at the end, -1 with errno. */
static ssize_t read_some(int fd, void *dst, size_t len)
{
    ssize_t got = 0;
    do {
        got = read(fd, dst, len < SSIZE_MAX ? len : SSIZE_MAX);
    } while (got < 0 && errno == EINTR);
    return got;
}

enum pay_status pay_file_read(const char *path, void *dst, size_t cap, size_t *ret_len,
                              struct pay_err *err)
{
    static const char op[] = "read file";
    enum pay_status status = PAY_OK;
    size_t len = 0;
    ssize_t got = 1;

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return failed(err, op, path);
    }
    while (got > 0) {
        uint8_t beyond; /* One byte past cap tells "exactly full" from "too long". */
        got =
            len < cap ? read_some(fd, (uint8_t *)dst + len, cap - len) : read_some(fd, &beyond, 1);
        if (got > 0 && len == cap) {
            status = pay_err_set(err, PAY_FATAL, 0, op, "\"%.100s\" is longer than %zu bytes", path,
                                 cap);
            goto out;
        }
        len += got > 0 ? (size_t)got : 0;
    }
    if (got < 0) {
        status = failed(err, op, path);
        goto out;
    }
    *ret_len = len;
out:
    (void)close(fd); /* Only read: nothing can be lost. */
    return status;
}

enum pay_status pay_file_read_buf(const char *path, struct pay_buf *out, struct pay_err *err)
{
    static const char op[] = "read file";
    enum pay_status status = PAY_OK;
    uint8_t part[4096];
    ssize_t got = 0;

    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return failed(err, op, path);
    }
    while ((got = read_some(fd, part, sizeof part)) > 0 && !out->failed) {
        pay_buf_add(out, part, (size_t)got);
    }
    if (got < 0) {
        status = failed(err, op, path);
    } else if (out->failed) {
        status = pay_err_set(err, PAY_FATAL, 0, op, "\"%.100s\" is longer than %zu bytes", path,
                             out->max);
    }
    pay_mem_wipe(part, sizeof part);
    (void)close(fd); /* Only read: nothing can be lost. */
    return status;
}

static bool write_all(int fd, struct pay_bytes content)
{
    size_t done = 0;
    while (done < content.len) {
        const ssize_t wrote = write(fd, content.ptr + done, content.len - done);
        if (wrote < 0 && errno != EINTR) {
            return false;
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
    return fsync(fd) == 0;
}

enum pay_status pay_file_write(const char *path, struct pay_bytes content, bool is_new,
                               struct pay_err *err)
{
    static const char op[] = "write file";
    enum pay_status status = PAY_OK;
    char beside[PATH_MAX];

    const int len = snprintf(beside, sizeof beside, "%s.%ld.tmp", path, (long)getpid());
    if (len < 0 || (size_t)len >= sizeof beside) {
        errno = ENAMETOOLONG;
        return failed(err, op, path);
    }
    const int fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return failed(err, op, beside);
    }
    if (!write_all(fd, content)) {
        status = failed(err, op, path);
    }
    if (close(fd) != 0 && status == PAY_OK) {
        status = failed(err, op, path);
    }
    /* link(2) refuses an existing name, rename(2) replaces it: both at once and whole. */
    if (status == PAY_OK && (is_new ? link(beside, path) : rename(beside, path)) != 0) {
        status = failed(err, op, path);
    }
    (void)unlink(beside); /* Gone already after a rename. */
    return status;
}

uint64_t pay_file_state(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return 0;
    }
    const uint64_t parts[] = {(uint64_t)info.st_dev, (uint64_t)info.st_ino, (uint64_t)info.st_size,
                              (uint64_t)info.st_mtim.tv_sec, (uint64_t)info.st_mtim.tv_nsec};
    const uint64_t state =
        pay_hash_fnv1a(PAY_FNV_START, (struct pay_bytes){(const uint8_t *)parts, sizeof parts});
    return state == 0 ? 1 : state;
}
