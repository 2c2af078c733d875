/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "tools/payfactctl/ctl.h"
#include "tools/payfactctl/migrations.h"

#include "common/base/banned.h"

struct options {
    const char *dir;
    bool only_status;
    bool is_dry;
};

static const struct pay_arg args[] = {
    {"--dir", PAY_ARG_TEXT, offsetof(struct options, dir), 0, 0, "DIR", false,
     "read the files from there, not those built in"},
    {"--status", PAY_ARG_FLAG, offsetof(struct options, only_status), 0, 0, NULL, false,
     "only say what is applied and what is not"},
    {"--dry-run", PAY_ARG_FLAG, offsetof(struct options, is_dry), 0, 0, NULL, false,
     "check everything, apply nothing"},
};

struct work {
    struct pay_ctl *ctl;
    const struct options *options;
    struct pay_store *store;
    struct pay_migrations list;
    struct pay_store_migration *applied;
    size_t applied_count;
    size_t first; /* To be applied. */
};

static enum pay_status lock(struct work *work, struct pay_err *err)
{
    bool is_locked = false;
    const enum pay_status status = pay_store_migration_try_lock(work->store, &is_locked, err);
    if (status != PAY_OK || is_locked) {
        return status;
    }
    pay_ctl_say("another migration runs: waiting for its end");
    return pay_store_migration_lock(work->store, err);
}

static enum pay_status look(struct work *work, struct pay_err *err)
{
    enum pay_status status =
        pay_store_migration_applied(work->store, work->applied, &work->applied_count, err);
    if (status == PAY_OK) {
        status = pay_migrations_compare(&work->list, work->applied, work->applied_count,
                                        &work->first, err);
    }
    return status;
}

static void print_status(const struct work *work)
{
    for (size_t i = 0; i < work->list.count; i++) {
        char at[28] = "";
        const bool is_applied = i < work->applied_count;
        if (is_applied) {
            pay_clock_format(work->applied[i].applied_at_us, at);
        }
        pay_buf_printf(&work->ctl->out, "%-40s %s%s\n", work->list.items[i].row.name,
                       is_applied ? "applied " : "to be applied", at);
    }
}

static enum pay_status apply(struct work *work, struct pay_err *err)
{
    for (size_t i = work->first; i < work->list.count; i++) {
        const struct pay_migration *item = &work->list.items[i];
        if (work->options->is_dry) {
            pay_buf_printf(&work->ctl->out, "%s would be applied\n", item->row.name);
            continue;
        }
        const enum pay_status status =
            pay_store_migration_apply(work->store, &item->row, item->sql, &work->ctl->more, err);
        if (status != PAY_OK) {
            pay_buf_printf(&work->ctl->more,
                           "%sthat was \"%s\"; what was applied before it stays\n",
                           work->ctl->more.len > 0 ? "\n" : "", item->row.name);
            return status;
        }
        pay_buf_printf(&work->ctl->out, "%s applied\n", item->row.name);
    }
    if (work->first == work->list.count) {
        pay_buf_printf(&work->ctl->out, "nothing to do: the schema is at %s\n",
                       work->list.items[work->list.count - 1].row.name);
    }
    return PAY_OK;
}

static enum pay_status migrate(struct work *work, struct pay_err *err)
{
    struct pay_pg_options options;
    enum pay_status status = pay_ctl_pg_options(work->ctl, "payfactctl migrate", &options, err);
    if (status != PAY_OK) {
        return status;
    }
    options.statement_timeout_ms = -1; /* an index may take its time */
    options.answer_timeout_ms = -1;
    options.read_only = work->options->only_status;
    status =
        work->options->dir == NULL
            ? pay_migrations_of(pay_migration_files, pay_migration_file_count, &work->list, err)
            : pay_migrations_read(work->options->dir, &work->list, err);
    if (status == PAY_OK) {
        status = pay_store_new(&options, &work->store, err);
    }
    if (status == PAY_OK) {
        status = pay_store_connect(work->store, err);
    }
    if (status == PAY_OK && !work->options->only_status) {
        status = lock(work, err);
    }
    if (status == PAY_OK) {
        status = look(work, err);
    }
    if (work->options->only_status) {
        print_status(work);
        return status;
    }
    return status == PAY_OK ? apply(work, err) : status;
}

static enum pay_ctl_exit run(struct pay_ctl *ctl, const void *options, struct pay_err *err)
{
    struct work work = {
        .ctl = ctl,
        .options = options,
        .applied = pay_mem_new(PAY_STORE_MIGRATIONS_MAX, sizeof *work.applied),
    };
    const enum pay_status status = work.applied == NULL
                                       ? pay_err_set(err, PAY_RETRY, 0, "migrate", "memory is out")
                                       : migrate(&work, err);
    work.store = pay_store_free(work.store); /* the lock goes with the connection */
    pay_migrations_free(&work.list);
    work.applied = pay_mem_free(work.applied);
    return pay_ctl_exit_of(status);
}

const struct pay_ctl_command pay_ctl_migrate = {
    .name = "migrate",
    .what = "bring the database's schema to this version",
    .args = {args, sizeof args / sizeof args[0]},
    .options_size = sizeof(struct options),
    .run = run,
};
