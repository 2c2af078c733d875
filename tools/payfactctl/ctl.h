/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file ctl.h
 * @brief What every command of payfactctl gets, and how one is described.
 *
 * A command is one row: its name, its table of arguments and a function. main.c finds the row,
 * reads settings and arguments, runs the function, prints what it wrote and ends with what it
 * answers.
 */
#ifndef PAY_CTL_CTL_H
#define PAY_CTL_CTL_H

#include "common/base/config.h"
#include "common/base/log.h"
#include "common/io/kafka/kafka_conf.h"
#include "common/io/pg/pg.h"
#include "tools/payfactctl/args.h"

#define PAY_CTL_OUTPUT_BYTES_MAX ((size_t)16 * 1024 * 1024)

/** Exit statuses; the help lists them. */
enum pay_ctl_exit {
    PAY_CTL_OK = 0,
    PAY_CTL_FAILED = 1,    /**< A server or file is away: nothing was done, try again. */
    PAY_CTL_USAGE = 2,     /**< Command line or settings. */
    PAY_CTL_NOT_FOUND = 3, /**< Nothing is known by that name. */
    PAY_CTL_REFUSED = 4,   /**< What is there does not allow it: a person must look. */
    PAY_CTL_UNKNOWN = 5,   /**< It may have been done: look before trying again. */
};

struct pay_ctl_settings {
    char log_level[PAY_CFG_TEXT_MAX];
    char pg_conninfo[PAY_CFG_TEXT_MAX];
    char pg_password_file[PAY_CFG_TEXT_MAX];
    char kafka_brokers[PAY_CFG_TEXT_MAX];
    char kafka_properties_file[PAY_CFG_TEXT_MAX];
    char topic_prefix[PAY_CFG_TEXT_MAX];
    char registry_url[PAY_CFG_TEXT_MAX];
    char registry_user[PAY_CFG_TEXT_MAX];
    char registry_password_file[PAY_CFG_TEXT_MAX];
    char registry_token_file[PAY_CFG_TEXT_MAX];
    char registry_ca_file[PAY_CFG_TEXT_MAX];
};

extern const struct pay_cfg_table pay_ctl_config;

struct pay_ctl {
    struct pay_ctl_settings settings;
    struct pay_buf out;  /**< Standard output, printed at the end. */
    struct pay_buf more; /**< Behind the error's line on standard error. */
};

struct pay_ctl_command {
    const char *name; /**< One word or two: "migrate", "keygen evidence". */
    const char *what; /**< One sentence for the help. */
    struct pay_arg_table args;
    size_t options_size;
    /** @param options the struct that the table fills. @param err set unless the answer is OK. */
    enum pay_ctl_exit (*run)(struct pay_ctl *ctl, const void *options, struct pay_err *err);
};

extern const struct pay_ctl_command pay_ctl_migrate;
extern const struct pay_ctl_command pay_ctl_topics;
extern const struct pay_ctl_command pay_ctl_schemas_check;
extern const struct pay_ctl_command pay_ctl_schemas_register;
extern const struct pay_ctl_command pay_ctl_explain;
extern const struct pay_ctl_command pay_ctl_dlq_list;
extern const struct pay_ctl_command pay_ctl_dlq_show;
extern const struct pay_ctl_command pay_ctl_dlq_replay;
extern const struct pay_ctl_command pay_ctl_dlq_discard;
extern const struct pay_ctl_command pay_ctl_evidence;
extern const struct pay_ctl_command pay_ctl_keygen_command;
extern const struct pay_ctl_command pay_ctl_keygen_evidence;
extern const struct pay_ctl_command pay_ctl_refund;
extern const struct pay_ctl_command pay_ctl_capture;
extern const struct pay_ctl_command pay_ctl_cancel;
extern const struct pay_ctl_command pay_ctl_correct;
extern const struct pay_ctl_command pay_ctl_force_close;
extern const struct pay_ctl_command pay_ctl_release;
extern const struct pay_ctl_command pay_ctl_override;
extern const struct pay_ctl_command pay_ctl_resolve;
extern const struct pay_ctl_command pay_ctl_approve;
extern const struct pay_ctl_command pay_ctl_decline;
extern const struct pay_ctl_command pay_ctl_cases;
extern const struct pay_ctl_command pay_ctl_approvals;
extern const struct pay_ctl_command pay_ctl_pause_route;
extern const struct pay_ctl_command pay_ctl_resume_route;
extern const struct pay_ctl_command pay_ctl_send_create_payment;
extern const struct pay_ctl_command pay_ctl_send_start_attempt;
extern const struct pay_ctl_command pay_ctl_send_change_method;
extern const struct pay_ctl_command pay_ctl_send_continue_attempt;
extern const struct pay_ctl_command pay_ctl_send_cancel_payment;

/** @brief Run the command that @p argv names. @return the exit status. */
int pay_ctl_main(int argc, char *const *argv);

/** @brief FAILED, REFUSED or UNKNOWN for a class of failure. */
enum pay_ctl_exit pay_ctl_exit_of(enum pay_status status);
/** @brief PAY_REJECT unless PAYFACT_PG_CONNINFO is set. @param who for pg_stat_activity. */
PAY_MUST_CHECK enum pay_status pay_ctl_pg_options(const struct pay_ctl *ctl, const char *who,
                                                  struct pay_pg_options *ret_options,
                                                  struct pay_err *err);
struct pay_store;
/**
 * @brief A store that is connected; the caller frees it, also after a failure.
 * @param who for pg_stat_activity. @param is_reader nothing is written through it.
 */
PAY_MUST_CHECK enum pay_status pay_ctl_store(const struct pay_ctl *ctl, const char *who,
                                             bool is_reader, struct pay_store **ret_store,
                                             struct pay_err *err);
/** @brief PAY_REJECT unless there are brokers. */
PAY_MUST_CHECK enum pay_status
pay_ctl_kafka_conf(const struct pay_ctl *ctl, struct pay_kafka_conf *ret_conf, struct pay_err *err);
/**
 * @brief Compare the public schemas with the registry: a line for each that it does not have as it
 * should.
 * @param ret_differences how many lines were written.
 */
PAY_MUST_CHECK enum pay_status pay_ctl_schemas_compare(struct pay_ctl *ctl, size_t *ret_differences,
                                                       struct pay_err *err);
/** @brief A line on standard error at once: what is being waited for. */
void pay_ctl_say(const char *text);

#endif /* PAY_CTL_CTL_H */
