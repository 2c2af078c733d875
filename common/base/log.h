/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file log.h
 * @brief One JSON line per event on stderr, written with one write(2); safe from any thread.
 *
 * Keys: ts level svc event, then the fields given. Event names are stable and listed in
 * docs/OPERATIONS.md. Never log payloads, secrets or personal data: there is no call for them.
 *
 *     pay_log(PAY_LOG_INFO, "decided", PAY_F_STR("payment_id", id), PAY_F_INT("offset", offset));
 */
#ifndef PAY_BASE_LOG_H
#define PAY_BASE_LOG_H

#include "common/base/err.h"
#include "common/base/str.h"

enum pay_log_level {
    PAY_LOG_DEBUG,
    PAY_LOG_INFO,
    PAY_LOG_WARN,
    PAY_LOG_ERROR,
    PAY_LOG_LEVEL_COUNT
};

enum pay_log_kind { PAY_LOG_FIELD_STR, PAY_LOG_FIELD_INT, PAY_LOG_FIELD_BOOL };

struct pay_log_field {
    const char *key;
    enum pay_log_kind kind;
    const char *str; /**< NULL: the field is left out. */
    int64_t num;
};

#define PAY_F_STR(key_, value_) ((struct pay_log_field){(key_), PAY_LOG_FIELD_STR, (value_), 0})
#define PAY_F_INT(key_, value_) \
    ((struct pay_log_field){(key_), PAY_LOG_FIELD_INT, NULL, (int64_t)(value_)})
#define PAY_F_BOOL(key_, value_) \
    ((struct pay_log_field){(key_), PAY_LOG_FIELD_BOOL, NULL, (value_) ? 1 : 0})
/** The three fields of an error: err_class, err_code, err (op: text). */
#define PAY_F_ERR(err_)                                                                           \
    PAY_F_STR("err_class", pay_status_name((err_)->status)), PAY_F_INT("err_code", (err_)->code), \
        PAY_F_STR("err_op", (err_)->op), PAY_F_STR("err", (err_)->text)

#define pay_log(level_, event_, ...)                                               \
    pay_log_write((level_), (event_), (const struct pay_log_field[]){__VA_ARGS__}, \
                  sizeof((const struct pay_log_field[]){__VA_ARGS__}) /            \
                      sizeof(struct pay_log_field))

/** @param service static name for key svc. @param least lines below this level are dropped. */
void pay_log_init(const char *service, enum pay_log_level least);
bool pay_log_level_parse(const char *text, enum pay_log_level *ret_level);
void pay_log_write(enum pay_log_level level, const char *event, const struct pay_log_field *fields,
                   size_t count);
/**
 * @brief From here on this thread's lines are written together, as many whole ones as one write
 * takes that is never mixed with another thread's. A warning or an error is written at once, with
 * what stands before it.
 */
void pay_log_hold(void);
/** @brief Write what is held; lines are written one by one again. */
void pay_log_let_go(void);

#endif /* PAY_BASE_LOG_H */
