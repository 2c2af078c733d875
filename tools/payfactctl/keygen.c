/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/ulid.h"
#include "common/crypto/ed25519.h"
#include "common/crypto/keyring.h"
#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"

#define KEY_ID_MAX 64
#define PATH_MAX_BYTES 1024

static const char op[] = "keygen";

/* ---- keygen command: a pair for who signs commands ---- */

struct command_options {
    const char *dir;
    const char *id;
};

static const struct pay_arg command_args[] = {
    {"--out", PAY_ARG_TEXT, offsetof(struct command_options, dir), 0, 0, "DIR", true,
     "folder for ID.pem (private, 0600) and ID.pub.pem"},
    {"--id", PAY_ARG_TEXT, offsetof(struct command_options, id), 0, 0, "ID", true,
     "key id, as accounts.json will name it"},
};

static bool is_id(const char *text)
{
    static const char chars[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t len = strlen(text);
    return len > 0 && len <= KEY_ID_MAX && text[0] != '.' && strspn(text, chars) == len;
}

static enum pay_ctl_exit run_command(struct pay_ctl *ctl, const void *options, struct pay_err *err)
{
    const struct command_options *asked = options;
    char private_path[PATH_MAX_BYTES];
    char public_path[PATH_MAX_BYTES];
    if (!is_id(asked->id)) {
        (void)pay_err_set(err, PAY_REJECT, 0, op,
                          "--id \"%.70s\" is not 1 to %d of A-Z a-z 0-9 . _ -", asked->id,
                          KEY_ID_MAX);
        return PAY_CTL_USAGE;
    }
    const int a = snprintf(private_path, sizeof private_path, "%s/%s.pem", asked->dir, asked->id);
    const int b = snprintf(public_path, sizeof public_path, "%s/%s.pub.pem", asked->dir, asked->id);
    if (a >= (int)sizeof private_path || b >= (int)sizeof public_path) {
        (void)pay_err_set(err, PAY_REJECT, 0, op, "--out is too long");
        return PAY_CTL_USAGE;
    }
    const enum pay_status status = pay_ed25519_generate_files(private_path, public_path, err);
    if (status == PAY_OK) {
        pay_buf_printf(&ctl->out,
                       "private key: %s\npublic key:  %s\nfor accounts.json: {\"id\": \"%s\","
                       " \"file\": \"%s.pub.pem\"}\n",
                       private_path, public_path, asked->id, asked->id);
    }
    return pay_ctl_exit_of(status);
}

/* ---- keygen evidence: the keyring that seals evidence ---- */

struct evidence_options {
    const char *file;
    const char *id;
    bool is_rotation;
};

static const struct pay_arg evidence_args[] = {
    {"--out", PAY_ARG_TEXT, offsetof(struct evidence_options, file), 0, 0, "FILE", true,
     "keyring file (0600)"},
    {"--id", PAY_ARG_TEXT, offsetof(struct evidence_options, id), 0, 0, "ID", false,
     "id of the new key; by default made of the date"},
    {"--rotate", PAY_ARG_FLAG, offsetof(struct evidence_options, is_rotation), 0, 0, NULL, false,
     "add a key to an existing file and seal with it from now on; the old ones still open"},
};

/* "2026-11-30.7KQ2ZX": a date for people, the rest so that two of a day differ. */
static void make_id(char dst[PAY_KEYRING_ID_MAX])
{
    char at[28];
    char ulid[PAY_ULID_LEN + 1];
    pay_clock_format(pay_clock_wall_us(), at);
    pay_ulid_new(ulid);
    (void)snprintf(dst, PAY_KEYRING_ID_MAX, "%.10s.%s", at, ulid + PAY_ULID_LEN - 6);
}

static enum pay_status write_ring(const struct evidence_options *asked, const char *id,
                                  struct pay_err *err)
{
    struct pay_keyring *old = NULL;
    struct pay_buf text = pay_buf_make(PAY_KEYRING_FILE_MAX);
    enum pay_status status = asked->is_rotation ? pay_keyring_load(asked->file, &old, err) : PAY_OK;
    if (status == PAY_OK) {
        status = pay_keyring_generate(old, id, &text, err);
    }
    if (status == PAY_OK) {
        status = pay_file_write(asked->file, pay_buf_bytes(&text), !asked->is_rotation, err);
    }
    if (text.data != NULL) {
        pay_mem_wipe(text.data, text.len);
    }
    pay_buf_free(&text);
    old = pay_keyring_free(old);
    return status;
}

static enum pay_ctl_exit run_evidence(struct pay_ctl *ctl, const void *options, struct pay_err *err)
{
    const struct evidence_options *asked = options;
    char id[PAY_KEYRING_ID_MAX];
    make_id(id);
    if (asked->id != NULL && !pay_str_copy(id, sizeof id, pay_str_of(asked->id))) {
        (void)pay_err_set(err, PAY_REJECT, 0, op, "--id is longer than %d bytes",
                          PAY_KEYRING_ID_MAX - 1);
        return PAY_CTL_USAGE;
    }
    const enum pay_status status = write_ring(asked, id, err);
    if (status == PAY_OK) {
        pay_buf_printf(&ctl->out, "%s: seals with \"%s\" now\n", asked->file, id);
    }
    return pay_ctl_exit_of(status);
}

const struct pay_ctl_command pay_ctl_keygen_command = {
    .name = "keygen command",
    .what = "make an Ed25519 pair that signs commands",
    .args = {command_args, sizeof command_args / sizeof command_args[0]},
    .options_size = sizeof(struct command_options),
    .run = run_command,
};

const struct pay_ctl_command pay_ctl_keygen_evidence = {
    .name = "keygen evidence",
    .what = "make or rotate the keyring that seals evidence",
    .args = {evidence_args, sizeof evidence_args / sizeof evidence_args[0]},
    .options_size = sizeof(struct evidence_options),
    .run = run_evidence,
};
