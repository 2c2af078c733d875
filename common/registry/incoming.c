/* SPDX-License-Identifier: Apache-2.0 */
#include "common/registry/incoming.h"

#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/contracts/released.h"

#include "common/base/banned.h"

#define FRAME_BYTES 5

enum known_as {
    FREE,
    USABLE,  /* fingerprint is known to the codec. Ids never change their schema: for ever. */
    USELESS, /* The registry has it, but it cannot be read here. For ever as well. */
    ABSENT,  /* The registry has no such id, as of now. */
};

struct entry {
    enum known_as as;
    enum pay_record record;
    uint32_t id;
    uint64_t fingerprint;
    int64_t since_us; /* ABSENT: when it was missed first. */
    int64_t asked_us; /* ABSENT: when it was missed last. */
};

struct pay_incoming {
    struct pay_registry *registry;
    struct pay_codec *codec;
    struct entry entries[PAY_INCOMING_IDS_MAX];
    size_t next; /* The oldest. */
};

static struct entry *find(struct pay_incoming *incoming, enum pay_record record, uint32_t id)
{
    for (size_t i = 0; i < PAY_INCOMING_IDS_MAX; i++) {
        struct entry *entry = &incoming->entries[i];
        if (entry->as != FREE && entry->record == record && entry->id == id) {
            return entry;
        }
    }
    return NULL;
}

static bool find_schema(void *arg, enum pay_record record, uint32_t schema_id,
                        uint64_t *ret_fingerprint)
{
    const struct entry *entry = find(arg, record, schema_id);
    if (entry == NULL || entry->as != USABLE) {
        return false;
    }
    *ret_fingerprint = entry->fingerprint;
    return true;
}

enum pay_status pay_incoming_new(struct pay_registry *registry, struct pay_codec *codec,
                                 struct pay_incoming **ret_incoming, struct pay_err *err)
{
    struct pay_incoming *incoming = pay_mem_new(1, sizeof *incoming);
    if (incoming == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, "schema ids", "out of memory");
    }
    incoming->registry = registry;
    incoming->codec = codec;
    pay_codec_on_schema_id(codec, find_schema, incoming);
    *ret_incoming = incoming;
    return PAY_OK;
}

struct pay_incoming *pay_incoming_free(struct pay_incoming *incoming)
{
    if (incoming != NULL) {
        pay_codec_on_schema_id(incoming->codec, NULL, NULL);
    }
    return pay_mem_free(incoming);
}

/* The processor reads a command's signed bytes again and knows only what is compiled in. */
static bool must_be_released(enum pay_record record)
{
    return record == PAY_RECORD_COMMAND;
}

/* @return PAY_RETRY when memory is out, PAY_REJECT: not readable here. */
static enum pay_status understand(struct pay_incoming *incoming, enum pay_record record,
                                  struct pay_str schema, uint64_t *ret_fingerprint,
                                  struct pay_err *err)
{
    if (!must_be_released(record)) {
        return pay_codec_learn(incoming->codec, record, schema, ret_fingerprint, err);
    }
    const enum pay_status status =
        pay_schema_text_fingerprint(record, schema, ret_fingerprint, err);
    if (status == PAY_OK && !pay_released_has(record, *ret_fingerprint)) {
        return pay_err_set(err, PAY_REJECT, PAY_CODEC_SCHEMA_UNKNOWN, "schema ids",
                           "a schema of %s that this release does not have",
                           pay_record_name(record));
    }
    return status;
}

static void note_useless(const struct entry *entry, const struct pay_err *err)
{
    pay_log(PAY_LOG_WARN, "schema_not_usable", PAY_F_STR("record", pay_record_name(entry->record)),
            PAY_F_INT("schema_id", entry->id), PAY_F_ERR(err));
}

/* @return PAY_RETRY: nothing is known. Else entry is what the registry says. */
static enum pay_status ask(struct pay_incoming *incoming, struct entry *entry, struct pay_err *err)
{
    struct pay_buf schema = pay_buf_make(PAY_REGISTRY_SCHEMA_BYTES_MAX);
    struct pay_err why = {.status = PAY_OK};
    enum pay_status status = pay_registry_fetch(incoming->registry, entry->id, &schema, &why);
    const bool is_absent = status == PAY_REJECT && why.code == PAY_REGISTRY_NOT_FOUND;
    if (status == PAY_OK) {
        status =
            understand(incoming, entry->record, pay_buf_str(&schema), &entry->fingerprint, &why);
    }
    pay_buf_free(&schema);
    if (status != PAY_OK && status != PAY_REJECT) {
        return pay_err_set(err, PAY_RETRY, why.code, "schema ids", "%s", why.text);
    }
    entry->as = status == PAY_OK ? USABLE : is_absent ? ABSENT : USELESS;
    if (entry->as == USELESS) {
        note_useless(entry, &why);
    }
    return PAY_OK;
}

static struct entry *make_room(struct pay_incoming *incoming)
{
    struct entry *entry = &incoming->entries[incoming->next];
    incoming->next = (incoming->next + 1) % PAY_INCOMING_IDS_MAX;
    return entry;
}

static bool is_settled(const struct entry *entry, int64_t now_us)
{
    if (entry == NULL) {
        return false;
    }
    const int64_t age_us = now_us - entry->asked_us;
    const bool is_late = entry->asked_us - entry->since_us >= INT64_C(1000) * PAY_INCOMING_GRACE_MS;
    return entry->as != ABSENT || (is_late && age_us < INT64_C(1000) * PAY_INCOMING_ABSENT_MS);
}

static enum pay_status look_up(struct pay_incoming *incoming, enum pay_record record, uint32_t id,
                               struct pay_err *err)
{
    const int64_t now_us = pay_clock_mono_us();
    struct entry *entry = find(incoming, record, id);
    if (is_settled(entry, now_us)) {
        return PAY_OK;
    }
    struct entry asked = {.record = record, .id = id};
    const enum pay_status status = ask(incoming, &asked, err);
    if (status != PAY_OK) {
        return status;
    }
    asked.since_us = entry == NULL ? now_us : entry->since_us;
    asked.asked_us = now_us;
    entry = entry == NULL ? make_room(incoming) : entry;
    *entry = asked;
    return is_settled(entry, now_us)
               ? PAY_OK
               : pay_err_set(err, PAY_RETRY, PAY_REGISTRY_NOT_FOUND, "schema ids",
                             "schema id %u is not there yet", (unsigned)id);
}

enum pay_status pay_incoming_resolve(struct pay_incoming *incoming, enum pay_record record,
                                     struct pay_bytes value, struct pay_err *err)
{
    if (value.ptr == NULL || value.len < FRAME_BYTES || value.ptr[0] != 0x00) {
        return PAY_OK; /* Another framing, or none: the codec says. */
    }
    const uint32_t id = (uint32_t)value.ptr[1] << 24 | (uint32_t)value.ptr[2] << 16 |
                        (uint32_t)value.ptr[3] << 8 | (uint32_t)value.ptr[4];
    return look_up(incoming, record, id, err);
}
