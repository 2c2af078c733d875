/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/log.h"

#include "common/base/buf.h"
#include "common/base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "common/base/banned.h"

/* A write to a pipe of up to PIPE_BUF (4096) bytes is never mixed with another thread's. */
#define LINE_MAX_BYTES 4096u
#define CUT_MARK ",\"cut\":true"
#define TAIL_BYTES (sizeof CUT_MARK + sizeof "}\n")

static _Thread_local struct {
    bool is_on;
    size_t len;
    uint8_t lines[LINE_MAX_BYTES];
} held;

static _Atomic(const char *) service_name = "payfact";
static atomic_int least_level = PAY_LOG_INFO;

static const char *const level_names[] = {
    [PAY_LOG_DEBUG] = "debug",
    [PAY_LOG_INFO] = "info",
    [PAY_LOG_WARN] = "warn",
    [PAY_LOG_ERROR] = "error",
};
_Static_assert(sizeof level_names / sizeof level_names[0] == PAY_LOG_LEVEL_COUNT,
               "name each level");

void pay_log_init(const char *service, enum pay_log_level least)
{
    atomic_store(&service_name, service);
    atomic_store(&least_level, (int)least);
}

bool pay_log_level_parse(const char *text, enum pay_log_level *ret_level)
{
    for (int i = 0; i < PAY_LOG_LEVEL_COUNT; i++) {
        if (pay_str_eq_c(pay_str_of(text), level_names[i])) {
            *ret_level = (enum pay_log_level)i;
            return true;
        }
    }
    return false;
}

static void add_value(struct pay_buf *line, const struct pay_log_field *field)
{
    switch (field->kind) {
    case PAY_LOG_FIELD_STR:
        pay_buf_add_json_str(line, pay_str_of(field->str));
        return;
    case PAY_LOG_FIELD_INT:
        pay_buf_printf(line, "%" PRId64, field->num);
        return;
    case PAY_LOG_FIELD_BOOL:
        pay_buf_add_c(line, field->num != 0 ? "true" : "false");
        return;
    }
}

/* A field that does not fit is left out whole, so the line stays JSON. @return false then. */
static bool add_field(struct pay_buf *line, const struct pay_log_field *field)
{
    const size_t before = line->len;

    if (field->kind == PAY_LOG_FIELD_STR && field->str == NULL) {
        return true;
    }
    pay_buf_add_char(line, ',');
    pay_buf_add_json_str(line, pay_str_of(field->key));
    pay_buf_add_char(line, ':');
    add_value(line, field);
    if (!line->failed) {
        return true;
    }
    line->failed = false;
    pay_buf_cut(line, before);
    return false;
}

static void write_all(const uint8_t *data, size_t len)
{
    while (len > 0) {
        const ssize_t done = write(STDERR_FILENO, data, len);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done <= 0) {
            return; /* Nowhere is left to say that the log is gone. */
        }
        data += done;
        len -= (size_t)done;
    }
}

static void write_held(void)
{
    write_all(held.lines, held.len);
    held.len = 0;
}

void pay_log_hold(void)
{
    held.is_on = true;
}

void pay_log_let_go(void)
{
    const int errno_before = errno;
    write_held();
    held.is_on = false;
    errno = errno_before;
}

static void put(enum pay_log_level level, const struct pay_buf *line)
{
    if (!held.is_on) {
        write_all(line->data, line->len);
        return;
    }
    if (held.len + line->len > sizeof held.lines) {
        write_held();
    }
    memcpy(held.lines + held.len, line->data, line->len);
    held.len += line->len;
    if (level >= PAY_LOG_WARN) {
        write_held();
    }
}

void pay_log_write(enum pay_log_level level, const char *event, const struct pay_log_field *fields,
                   size_t count)
{
    uint8_t memory[LINE_MAX_BYTES + 1];
    /* Lent memory: max < cap, so the buffer never grows and must not be freed. */
    struct pay_buf line = {
        .data = memory, .cap = sizeof memory, .max = LINE_MAX_BYTES - TAIL_BYTES};
    char ts[28];
    const int errno_before = errno;

    if ((int)level < atomic_load(&least_level) || (unsigned)level >= PAY_LOG_LEVEL_COUNT) {
        return;
    }
    pay_clock_format(pay_clock_wall_us(), ts);
    pay_buf_printf(&line, "{\"ts\":\"%s\",\"level\":\"%s\"", ts, level_names[level]);
    bool is_whole = add_field(&line, &PAY_F_STR("svc", atomic_load(&service_name)));
    is_whole = add_field(&line, &PAY_F_STR("event", event)) && is_whole;
    for (size_t i = 0; i < count; i++) {
        is_whole = add_field(&line, &fields[i]) && is_whole;
    }
    line.max = LINE_MAX_BYTES;
    pay_buf_add_c(&line, is_whole ? "}\n" : CUT_MARK "}\n");
    put(level, &line);
    errno = errno_before;
}
