/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Raw evidence, opened for one person and written down: a stored input's bytes, or a dead letter's
 * where no input was made of it. The bytes go to a file that only its owner may read, never to a
 * terminal.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/contracts/keys.h"
#include "common/crypto/keyring.h"
#include "common/crypto/sha256.h"
#include "tools/payfactctl/dlq.h"

#include "common/base/banned.h"

static const char op[] = "evidence";

struct options {
    const char *id, *who, *reason, *keyring_file, *file;
    bool is_letter;
};

#define AT(member_) offsetof(struct options, member_)

static const struct pay_arg args[] = {
    {"ID", PAY_ARG_OPERAND, AT(id), 0, 0, NULL, true,
     "psp/account/key of a stored input; with --letter topic/partition/offset"},
    {"--letter", PAY_ARG_FLAG, AT(is_letter), 0, 0, NULL, false,
     "a letter of the topic dlq (a command, notification or job)"},
    {"--who", PAY_ARG_TEXT, AT(who), 0, 0, "ID", true, "who reads it: written to the audit log"},
    {"--reason", PAY_ARG_TEXT, AT(reason), 0, 0, "TEXT", true, "why: written to the audit log"},
    {"--keyring", PAY_ARG_TEXT, AT(keyring_file), 0, 0, "FILE", true, "evidence keyring"},
    {"--out", PAY_ARG_TEXT, AT(file), 0, 0, "FILE", true, "new file for the bytes"},
};

/* What is to be opened. */
struct sealed {
    bool found;
    struct pay_str key_id; /* Absent: the bytes are plain. */
    struct pay_str bound_to;
    struct pay_bytes bytes;
    struct pay_bytes sha256; /* Absent: not known. */
};

/* ---- a letter ---- */

struct search {
    const char *id;
    struct pay_arena *arena;
    struct sealed *found;
};

static bool on_letter(void *ctx, const struct pay_dead_letter *letter)
{
    struct search *search = ctx;
    const struct pay_sealed *sealed = &letter->sealed_value;
    const bool is_sealed = sealed->ciphertext.ptr != NULL;
    if (!pay_str_eq_c(letter->dead_letter_id, search->id)) {
        return true;
    }
    *search->found = (struct sealed){
        .found = true,
        .key_id =
            is_sealed ? pay_arena_str(search->arena, sealed->key_id) : (struct pay_str){NULL, 0},
        .bound_to =
            is_sealed ? pay_arena_str(search->arena, sealed->bound_to) : (struct pay_str){NULL, 0},
        .bytes = pay_arena_bytes(search->arena, is_sealed ? sealed->ciphertext : letter->value),
    };
    return false;
}

/* topic/partition/offset as the key that poison of that place would have. */
static struct pay_str audit_name(const char *id, struct pay_arena *arena)
{
    struct pay_str name = pay_arena_printf(arena, "//%s", id);
    char *text = name.ptr == NULL ? NULL : pay_arena_alloc(arena, name.len + 1);
    if (text == NULL) {
        return (struct pay_str){NULL, 0};
    }
    memcpy(text, name.ptr, name.len + 1);
    for (size_t i = 2; i < name.len; i++) {
        if (text[i] == '/') {
            text[i] = ':';
        }
    }
    return (struct pay_str){text, name.len};
}

/* ---- both ---- */

static enum pay_status read_stored(const struct pay_ctl *ctl, const struct options *options,
                                   const char *id, struct pay_arena *arena,
                                   struct sealed *ret_sealed, struct pay_err *err)
{
    struct pay_store *store = NULL;
    struct pay_store_evidence evidence = {.found = false};
    const struct pay_store_reader reader = {options->who, options->reason, "payfactctl evidence"};
    enum pay_status status = pay_ctl_store(ctl, "payfactctl evidence", false, &store, err);
    if (status == PAY_OK) {
        status = pay_store_evidence_read(store, id, &reader, arena, &evidence, err);
    }
    (void)pay_store_free(store); /* always NULL */
    if (status == PAY_OK && evidence.found) {
        *ret_sealed = (struct sealed){.found = evidence.body.ptr != NULL,
                                      .key_id = evidence.key_id,
                                      .bound_to = pay_arena_str(arena, pay_str_of(id)),
                                      .bytes = evidence.body,
                                      .sha256 = evidence.sha256};
    }
    return status;
}

/* The audit row comes first: who may not be written down does not get to read. */
static enum pay_status find(struct pay_ctl *ctl, const struct options *options,
                            struct pay_arena *arena, struct sealed *ret_sealed, struct pay_err *err)
{
    if (!options->is_letter) {
        return read_stored(ctl, options, options->id, arena, ret_sealed, err);
    }
    struct sealed stored = {.found = false};
    const struct pay_str name = audit_name(options->id, arena);
    if (name.ptr == NULL) {
        return pay_err_set(err, PAY_RETRY, 0, op, "memory is out");
    }
    const enum pay_status status = read_stored(ctl, options, name.ptr, arena, &stored, err);
    if (status != PAY_OK) {
        return status;
    }
    struct search search = {.id = options->id, .arena = arena, .found = ret_sealed};
    struct pay_dlq_reading reading = {.on_letter = on_letter, .ctx = &search};
    return pay_dlq_read(ctl, &reading, err);
}

static enum pay_status open_sealed(const struct options *options, const struct sealed *sealed,
                                   struct pay_buf *plain, struct pay_err *err)
{
    struct pay_keyring *ring = NULL;
    if (sealed->key_id.ptr == NULL) {
        pay_buf_add(plain, sealed->bytes.ptr, sealed->bytes.len);
        return plain->failed ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out") : PAY_OK;
    }
    enum pay_status status = pay_keyring_load(options->keyring_file, &ring, err);
    if (status == PAY_OK) {
        const struct pay_bytes aad = {(const uint8_t *)sealed->bound_to.ptr, sealed->bound_to.len};
        status = pay_keyring_open(ring, sealed->key_id, aad, sealed->bytes, plain, err);
    }
    (void)pay_keyring_free(ring); /* always NULL */
    return status;
}

static enum pay_status write_plain(struct pay_ctl *ctl, const struct options *options,
                                   const struct sealed *sealed, const struct pay_buf *plain,
                                   struct pay_err *err)
{
    uint8_t digest[PAY_SHA256_BYTES];
    char hex[PAY_SHA256_HEX];
    const struct pay_bytes own = {digest, sizeof digest};
    pay_sha256(pay_buf_bytes(plain), digest);
    if (sealed->sha256.ptr != NULL && !pay_bytes_eq(sealed->sha256, own)) {
        return pay_err_set(err, PAY_REJECT, 0, op, "the bytes are not those that were received");
    }
    const enum pay_status status = pay_file_write(options->file, pay_buf_bytes(plain), true, err);
    if (status == PAY_OK) {
        pay_hex_encode(own, hex);
        pay_buf_printf(&ctl->out, "%zu bytes, sha256 %s\n", plain->len, hex);
    }
    return status;
}

static enum pay_ctl_exit run(struct pay_ctl *ctl, const void *given, struct pay_err *err)
{
    const struct options *options = given;
    struct sealed sealed = {.found = false};
    struct pay_buf plain = pay_buf_make(PAY_DEAD_LETTER_BYTES_MAX);
    struct pay_arena *arena = pay_arena_new(PAY_DLQ_ARENA_BYTES_MAX);
    enum pay_status status = arena == NULL ? pay_err_set(err, PAY_RETRY, 0, op, "memory is out")
                                           : find(ctl, options, arena, &sealed, err);
    enum pay_ctl_exit code = pay_ctl_exit_of(status);
    if (status == PAY_OK && !sealed.found) {
        (void)pay_err_set(err, PAY_REJECT, 0, op, "no sealed bytes are kept by that name");
        code = PAY_CTL_NOT_FOUND;
    } else if (status == PAY_OK) {
        status = open_sealed(options, &sealed, &plain, err);
        status = status != PAY_OK ? status : write_plain(ctl, options, &sealed, &plain, err);
        code = pay_ctl_exit_of(status);
    }
    if (plain.data != NULL) {
        pay_mem_wipe(plain.data, plain.len);
    }
    pay_buf_free(&plain);
    (void)pay_arena_free(arena); /* always NULL */
    return code;
}

const struct pay_ctl_command pay_ctl_evidence = {
    .name = "evidence",
    .what = "open the raw bytes of one input or dead letter; audited",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run,
};
