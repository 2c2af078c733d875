/* SPDX-License-Identifier: Apache-2.0 */
/* Every file of the folders given, once: the corpus as a test, with any compiler. */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/file.h"

#define FILE_BYTES_MAX ((size_t)2 * 1024 * 1024)

static void replay(const char *path, struct pay_buf *bytes)
{
    struct pay_err err = {.status = PAY_OK};
    pay_buf_reset(bytes);
    if (pay_file_read_buf(path, bytes, &err) != PAY_OK) {
        (void)fprintf(stderr, "%s: %s\n", path, err.text);
        exit(1); /* The only thread. NOLINT(concurrency-mt-unsafe) */
    }
    /* A copy of exactly its size, so that a sanitizer sees the first byte behind it. */
    uint8_t *copy = malloc(bytes->len == 0 ? 1 : bytes->len);
    FUZZ_CHECK(copy != NULL);
    if (bytes->len > 0) {
        memcpy(copy, bytes->data, bytes->len);
    }
    (void)LLVMFuzzerTestOneInput(copy, bytes->len); /* Always 0. */
    free(copy);
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int replay_folder(const char *folder, struct pay_buf *bytes)
{
    char path[4096];
    struct dirent **entries = NULL;
    const int count = scandir(folder, &entries, is_file, alphasort);
    for (int i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        replay(path, bytes);
        free(entries[i]);
    }
    free((void *)entries);
    return count;
}

int main(int argc, char **argv)
{
    struct pay_buf bytes = pay_buf_make(FILE_BYTES_MAX);
    int count = 0;
    for (int i = 1; i < argc; i++) {
        const int here = replay_folder(argv[i], &bytes);
        if (here <= 0) {
            (void)fprintf(stderr, "%s: no files\n", argv[i]);
            return 1;
        }
        count += here;
    }
    pay_buf_free(&bytes);
    (void)printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}
