/* SPDX-License-Identifier: Apache-2.0 */
#include "common/registry/outgoing.h"

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/contracts/released.h"

#include "common/base/banned.h"

static const char op[] = "schema ids";

/* One version of the subject; a version never changes. */
struct version {
    int number;
    bool is_ours; /* A schema of the record: fingerprint and id are set. */
    uint64_t fingerprint;
    uint32_t id;
};

struct pay_outgoing {
    struct pay_registry *registry;
    enum pay_record record;
    char subject[PAY_REGISTRY_SUBJECT_MAX];
    struct version versions[PAY_REGISTRY_VERSIONS_MAX];
    size_t count;
};

enum pay_status pay_outgoing_new(struct pay_registry *registry, enum pay_record record,
                                 const char *topic, struct pay_outgoing **ret_outgoing,
                                 struct pay_err *err)
{
    struct pay_outgoing *outgoing = pay_mem_new(1, sizeof *outgoing);
    if (outgoing == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "out of memory");
    }
    outgoing->registry = registry;
    outgoing->record = record;
    if (!pay_registry_subject(outgoing->subject, topic)) {
        (void)pay_outgoing_free(outgoing); /* Always NULL. */
        return pay_err_set(err, PAY_FATAL, 0, op, "topic '%.100s' makes no subject", topic);
    }
    *ret_outgoing = outgoing;
    return PAY_OK;
}

struct pay_outgoing *pay_outgoing_free(struct pay_outgoing *outgoing)
{
    return pay_mem_free(outgoing);
}

static bool has_version(const struct pay_outgoing *outgoing, int number)
{
    for (size_t i = 0; i < outgoing->count; i++) {
        if (outgoing->versions[i].number == number) {
            return true;
        }
    }
    return false;
}

/* A version that is no schema of the record is somebody's mistake: it is kept, and never used. */
static enum pay_status learn(struct pay_outgoing *outgoing, int number, struct pay_err *err)
{
    struct pay_err unread = {.status = PAY_OK};
    struct pay_buf schema = pay_buf_make(PAY_REGISTRY_SCHEMA_BYTES_MAX);
    struct version version = {.number = number};
    enum pay_status status = pay_registry_version(outgoing->registry, outgoing->subject, number,
                                                  &version.id, &schema, err);
    if (status == PAY_OK) {
        version.is_ours = pay_schema_text_fingerprint(outgoing->record, pay_buf_str(&schema),
                                                      &version.fingerprint, &unread) == PAY_OK;
    }
    if (status == PAY_REJECT) { /* Deleted since it was listed, or not Avro. */
        status = PAY_OK;
    }
    if (status == PAY_OK && outgoing->count < PAY_REGISTRY_VERSIONS_MAX) {
        outgoing->versions[outgoing->count++] = version;
    }
    pay_buf_free(&schema);
    return status;
}

enum pay_status pay_outgoing_refresh(struct pay_outgoing *outgoing, struct pay_err *err)
{
    struct pay_registry_versions versions = {.count = 0};
    enum pay_status status =
        pay_registry_versions(outgoing->registry, outgoing->subject, &versions, err);
    if (status == PAY_REJECT) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_NOT_FOUND, op,
                           "subject '%.60s' is not usable: run payfactctl schemas register",
                           outgoing->subject);
    }
    const int64_t end_us = pay_clock_mono_us() + INT64_C(1000) * PAY_OUTGOING_REFRESH_MS;
    for (size_t i = 0; status == PAY_OK && i < versions.count; i++) {
        if (has_version(outgoing, versions.numbers[i])) {
            continue;
        }
        status = pay_clock_mono_us() < end_us
                     ? learn(outgoing, versions.numbers[i], err)
                     : pay_err_set(err, PAY_RETRY, PAY_REGISTRY_AWAY, op, "it is slow");
    }
    return status;
}

/* The latest version of a schema whose documentation alone was changed. */
static const struct version *find(const struct pay_outgoing *outgoing, uint64_t fingerprint)
{
    const struct version *found = NULL;
    for (size_t i = 0; i < outgoing->count; i++) {
        const struct version *version = &outgoing->versions[i];
        if (version->is_ours && version->fingerprint == fingerprint) {
            found = version;
        }
    }
    return found;
}

bool pay_outgoing_knows(const struct pay_outgoing *outgoing, uint64_t fingerprint)
{
    return find(outgoing, fingerprint) != NULL;
}

enum pay_status pay_outgoing_frame(const struct pay_outgoing *outgoing, struct pay_bytes value,
                                   struct pay_buf *out, struct pay_err *err)
{
    uint64_t fingerprint = 0;
    if (value.ptr == NULL || value.len < PAY_CODEC_FRAME_BYTES || value.ptr[0] != 0xc3 ||
        value.ptr[1] != 0x01 ||
        !pay_fingerprint_get((struct pay_bytes){value.ptr + 2, 8}, &fingerprint)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "a value that is not in single-object encoding");
    }
    const struct version *version = find(outgoing, fingerprint);
    if (version == NULL) {
        return pay_err_set(err, PAY_RETRY, PAY_REGISTRY_NOT_FOUND, op,
                           "subject '%.60s' has no version with this value's schema",
                           outgoing->subject);
    }
    const uint8_t frame[] = {0, (uint8_t)(version->id >> 24), (uint8_t)(version->id >> 16),
                             (uint8_t)(version->id >> 8), (uint8_t)version->id};
    pay_buf_reset(out);
    pay_buf_add(out, frame, sizeof frame);
    pay_buf_add(out, value.ptr + PAY_CODEC_FRAME_BYTES, value.len - PAY_CODEC_FRAME_BYTES);
    return out->failed ? pay_err_set(err, PAY_RETRY, 0, op, "out of memory") : PAY_OK;
}
