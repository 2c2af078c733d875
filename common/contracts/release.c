/* SPDX-License-Identifier: Apache-2.0 */
#include "common/contracts/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/contracts/releases.h"

#include "common/base/banned.h"

#define NAME_MAX_BYTES 64

/* @return NULL when there is none; *ret_current for the program's own schemas. */
static const struct pay_release *find(const char *name, bool *ret_current)
{
    *ret_current = strcmp(name, "current") == 0;
    if (strcmp(name, "previous") == 0) {
        *ret_current = pay_release_count == 0; /* Before the first release. */
        return pay_release_count == 0 ? NULL : &pay_releases[pay_release_count - 1];
    }
    for (size_t i = 0; i < pay_release_count; i++) {
        if (strcmp(pay_releases[i].name, name) == 0) {
            return &pay_releases[i];
        }
    }
    return NULL;
}

/* @return 0, the current version, when the release did not have the record yet. */
static int version_of(const struct pay_release *release, enum pay_record record)
{
    char key[NAME_MAX_BYTES];
    const int len = snprintf(key, sizeof key, " %s/", pay_record_name(record));

    PAY_ASSERT(len > 0 && (size_t)len < sizeof key);
    const char *at = strstr(release->versions, key);
    return at == NULL ? 0 : (int)strtol(at + len, NULL, 10);
}

enum pay_status pay_release_check(const char *release, struct pay_err *err)
{
    bool is_current = false;

    if (find(release, &is_current) == NULL && !is_current) {
        return pay_err_set(err, PAY_REJECT, 0, "choose schemas",
                           "SCHEMA_WRITE '%s' is neither previous, current nor a known release",
                           release);
    }
    return PAY_OK;
}

enum pay_status pay_codec_write_release(struct pay_codec *codec, const char *release,
                                        struct pay_err *err)
{
    bool is_current = false;
    const struct pay_release *found = find(release, &is_current);
    enum pay_status status = pay_release_check(release, err);

    for (int record = 0; record < PAY_RECORD_COUNT && status == PAY_OK; record++) {
        const int version = is_current ? 0 : version_of(found, (enum pay_record)record);
        status = pay_codec_write_version(codec, (enum pay_record)record, version, err);
    }
    return status;
}

enum pay_status pay_codec_new_writing(const char *release, struct pay_codec **ret_codec,
                                      struct pay_err *err)
{
    struct pay_codec *codec = NULL;
    enum pay_status status = pay_codec_new(&codec, err);

    if (status == PAY_OK) {
        status = pay_codec_write_release(codec, release, err);
    }
    if (status == PAY_OK) {
        *ret_codec = codec;
    } else {
        (void)pay_codec_free(codec); /* Always NULL. */
    }
    return status;
}
