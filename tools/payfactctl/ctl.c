/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/ctl.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/store/store.h"

#include "common/base/banned.h"

#define COUNT(array_) (sizeof(array_) / sizeof((array_)[0]))
#define NAME "payfactctl"
#define STATEMENT_TIMEOUT_MS 5000

#define TEXT(member_, name_, default_, doc_)                                                  \
    {(name_), PAY_CFG_TEXT, offsetof(struct pay_ctl_settings, member_), (default_), 0, 0, "", \
     0,       (doc_)}

static const struct pay_cfg_row rows[] = {
    TEXT(log_level, "LOG_LEVEL", "warn", "Least level that is logged: debug, info, warn or error."),
    TEXT(pg_conninfo, "PG_CONNINFO", NULL,
         "libpq connection string or URI, without the password; for migrate the schema's owner,"
         " for explain, dlq and evidence a member of payfact_operator."),
    TEXT(pg_password_file, "PG_PASSWORD_FILE", NULL,
         "File that holds the password of the database role."),
    TEXT(kafka_brokers, "KAFKA_BROKERS", NULL, "Bootstrap brokers, host:port separated by commas."),
    TEXT(kafka_properties_file, "KAFKA_PROPERTIES_FILE", NULL,
         "File of librdkafka properties (name=value lines), for TLS, SASL and tuning."),
    TEXT(topic_prefix, "TOPIC_PREFIX", "payfact.", "Text put before every topic name."),
    TEXT(registry_url, "REGISTRY_URL", NULL,
         "Schema registry, root of its Confluent API; empty: none."),
    TEXT(registry_user, "REGISTRY_USER", NULL,
         "User for the schema registry; with it a password file."),
    TEXT(registry_password_file, "REGISTRY_PASSWORD_FILE", NULL,
         "File that holds that user's password."),
    TEXT(registry_token_file, "REGISTRY_TOKEN_FILE", NULL,
         "File that holds a bearer token for the schema registry, in place of a user."),
    TEXT(registry_ca_file, "REGISTRY_CA_FILE", NULL,
         "Certificates to trust for the schema registry, PEM; empty: the system's."),
};

const struct pay_cfg_table pay_ctl_config = {NAME, rows, COUNT(rows)};

static const struct pay_ctl_command *const commands[] = {
    &pay_ctl_migrate,
    &pay_ctl_topics,
    &pay_ctl_schemas_check,
    &pay_ctl_schemas_register,
    &pay_ctl_explain,
    &pay_ctl_dlq_list,
    &pay_ctl_dlq_show,
    &pay_ctl_dlq_replay,
    &pay_ctl_dlq_discard,
    &pay_ctl_evidence,
    &pay_ctl_refund,
    &pay_ctl_capture,
    &pay_ctl_cancel,
    &pay_ctl_correct,
    &pay_ctl_force_close,
    &pay_ctl_release,
    &pay_ctl_override,
    &pay_ctl_resolve,
    &pay_ctl_approve,
    &pay_ctl_decline,
    &pay_ctl_cases,
    &pay_ctl_approvals,
    &pay_ctl_pause_route,
    &pay_ctl_resume_route,
    &pay_ctl_send_create_payment,
    &pay_ctl_send_start_attempt,
    &pay_ctl_send_change_method,
    &pay_ctl_send_continue_attempt,
    &pay_ctl_send_cancel_payment,
    &pay_ctl_keygen_command,
    &pay_ctl_keygen_evidence,
};

static const char exits[] =
    "Exit: 0 done; 1 a server is away, nothing was done; 2 command line, settings or a file;\n"
    "3 nothing is known by that name; 4 refused by what is there; 5 it may have been done, look "
    "first.\n";

/* ---- for the commands ---- */

enum pay_ctl_exit pay_ctl_exit_of(enum pay_status status)
{
    static const enum pay_ctl_exit table[PAY_STATUS_COUNT] = {
        [PAY_OK] = PAY_CTL_OK,           [PAY_RETRY] = PAY_CTL_FAILED,
        [PAY_UNKNOWN] = PAY_CTL_UNKNOWN, [PAY_REJECT] = PAY_CTL_REFUSED,
        [PAY_FATAL] = PAY_CTL_USAGE,
    };
    return table[status];
}

enum pay_status pay_ctl_pg_options(const struct pay_ctl *ctl, const char *who,
                                   struct pay_pg_options *ret_options, struct pay_err *err)
{
    if (ctl->settings.pg_conninfo[0] == '\0') {
        return pay_err_set(err, PAY_FATAL, 0, "connect to PostgreSQL",
                           "PAYFACT_PG_CONNINFO is not set");
    }
    *ret_options = (struct pay_pg_options){
        .conninfo = ctl->settings.pg_conninfo,
        .password_file = ctl->settings.pg_password_file,
        .application_name = who,
    };
    return PAY_OK;
}

enum pay_status pay_ctl_store(const struct pay_ctl *ctl, const char *who, bool is_reader,
                              struct pay_store **ret_store, struct pay_err *err)
{
    struct pay_pg_options options;
    enum pay_status status = pay_ctl_pg_options(ctl, who, &options, err);
    if (status == PAY_OK) {
        options.read_only = is_reader;
        options.statement_timeout_ms = STATEMENT_TIMEOUT_MS;
        status = pay_store_new(&options, ret_store, err);
    }
    return status == PAY_OK ? pay_store_connect(*ret_store, err) : status;
}

enum pay_status pay_ctl_kafka_conf(const struct pay_ctl *ctl, struct pay_kafka_conf *ret_conf,
                                   struct pay_err *err)
{
    const struct pay_ctl_settings *settings = &ctl->settings;
    if (settings->kafka_brokers[0] == '\0' && settings->kafka_properties_file[0] == '\0') {
        return pay_err_set(err, PAY_FATAL, 0, "connect to Kafka",
                           "PAYFACT_KAFKA_BROKERS is not set");
    }
    *ret_conf = (struct pay_kafka_conf){
        .bootstrap = settings->kafka_brokers,
        .client_id = NAME,
        .properties_file = settings->kafka_properties_file,
    };
    return PAY_OK;
}

void pay_ctl_say(const char *text)
{
    (void)fprintf(stderr, NAME ": %s\n", text); /* nothing can be done about a closed stderr */
}

/* ---- help ---- */

static void help_all(struct pay_buf *out)
{
    pay_buf_add_c(out, NAME ": the operators' command line of payfact\n\nUsage: " NAME
                            " COMMAND [OPTION]...\n\n");
    for (size_t i = 0; i < COUNT(commands); i++) {
        pay_buf_printf(out, "  %-22s %s\n", commands[i]->name, commands[i]->what);
    }
    pay_buf_add_c(out,
                  "\n  COMMAND --help         its options\n"
                  "  --version              print name and version\n"
                  "  --print-config         print the settings in force\n"
                  "  --print-config-docs    print all settings as Markdown\n"
                  "\nSettings come from the environment. Other PAYFACT_ variables than its own are"
                  " left to the\nservices it shares an environment with.\n");
    pay_buf_add_c(out, exits);
}

static void help_one(const struct pay_ctl_command *command, struct pay_buf *out)
{
    pay_buf_printf(out, NAME " %s: %s\n\nUsage: " NAME " %s", command->name, command->what,
                   command->name);
    for (size_t i = 0; i < command->args.count; i++) {
        const struct pay_arg *arg = &command->args.rows[i];
        if (arg->kind == PAY_ARG_OPERAND) {
            pay_buf_printf(out, " [%s]", arg->name);
        }
    }
    pay_buf_add_c(out, " [OPTION]...\n\n");
    pay_args_print(&command->args, out);
    pay_buf_add_char(out, '\n');
    pay_buf_add_c(out, exits);
}

/* The commands whose name begins with @p word: "send" alone says which kinds there are. */
static bool help_group(const char *word, struct pay_buf *out)
{
    const size_t before = out->len;
    for (size_t i = 0; i < COUNT(commands); i++) {
        const char *name = commands[i]->name;
        if (strncmp(name, word, strlen(word)) == 0 && name[strlen(word)] == ' ') {
            pay_buf_printf(out, "  " NAME " %-22s %s\n", name, commands[i]->what);
        }
    }
    return out->len > before;
}

/* ---- finding and running ---- */

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* @param ret_words how many words its name takes. */
static const struct pay_ctl_command *find(int argc, char *const *argv, int *ret_words)
{
    for (size_t i = 0; i < COUNT(commands); i++) {
        const char *name = commands[i]->name;
        const char *space = strchr(name, ' ');
        const size_t first = space == NULL ? strlen(name) : (size_t)(space - name);
        if (strlen(argv[1]) != first || strncmp(argv[1], name, first) != 0) {
            continue;
        }
        if (space == NULL || (argc > 2 && strcmp(argv[2], space + 1) == 0)) {
            *ret_words = space == NULL ? 1 : 2;
            return commands[i];
        }
    }
    return NULL;
}

static void write_all(FILE *file, const struct pay_buf *buf)
{
    if (buf->len > 0) {
        (void)fwrite(buf->data, 1, buf->len, file); /* checked by finish() */
    }
}

/* What a command wrote must have reached its reader: a full disk is a failure. */
static int finish(const struct pay_ctl *ctl, int code)
{
    write_all(stdout, &ctl->out);
    if (fflush(stdout) != 0 || ferror(stdout) != 0 || ctl->out.failed) {
        pay_ctl_say("write output: standard output did not take all of it");
        return code == PAY_CTL_OK ? PAY_CTL_FAILED : code;
    }
    return code;
}

static int complain(const struct pay_ctl *ctl, const struct pay_err *err, int code)
{
    (void)fprintf(stderr, NAME ": %s: %s\n", err->op == NULL ? "failed" : err->op, err->text);
    write_all(stderr, &ctl->more);
    return code;
}

static int load_settings(struct pay_ctl *ctl)
{
    struct pay_err err = {0};
    enum pay_log_level level;
    if (pay_cfg_load_own(&pay_ctl_config, &ctl->settings, &ctl->more, &err) != PAY_OK) {
        return complain(ctl, &err, PAY_CTL_USAGE);
    }
    if (!pay_log_level_parse(ctl->settings.log_level, &level)) {
        pay_ctl_say("PAYFACT_LOG_LEVEL is none of debug, info, warn, error");
        return PAY_CTL_USAGE;
    }
    pay_log_init(NAME, level);
    return PAY_CTL_OK;
}

static int run(struct pay_ctl *ctl, const struct pay_ctl_command *command, int argc,
               char *const *argv)
{
    struct pay_err err = {0};
    void *options = pay_mem_new(1, command->options_size);
    int code = options == NULL ? PAY_CTL_FAILED : PAY_CTL_OK;
    if (code != PAY_CTL_OK) {
        (void)pay_err_set(&err, PAY_RETRY, 0, "start", "memory is out");
    } else if (pay_args_read(&command->args, argc, argv, options, &err) != PAY_OK) {
        code = PAY_CTL_USAGE;
    } else {
        code = (int)command->run(ctl, options, &err);
    }
    (void)pay_mem_free(options); /* always NULL */
    if (code != PAY_CTL_OK) {
        (void)complain(ctl, &err, code);
    }
    return code;
}

static int run_found(struct pay_ctl *ctl, int argc, char *const *argv)
{
    int words = 0;
    const struct pay_ctl_command *command = find(argc, argv, &words);
    if (command == NULL) {
        const bool is_group = help_group(argv[1], &ctl->more);
        const struct pay_err err = {.op = "read command line",
                                    .text = "unknown command, see --help"};
        return is_group && (argc == 2 || is_help(argv[2]))
                   ? (write_all(argc == 2 ? stderr : stdout, &ctl->more),
                      argc == 2 ? PAY_CTL_USAGE : PAY_CTL_OK)
                   : complain(ctl, &err, PAY_CTL_USAGE);
    }
    for (int i = 1 + words; i < argc; i++) {
        if (is_help(argv[i])) {
            help_one(command, &ctl->out);
            return PAY_CTL_OK;
        }
    }
    const int code = load_settings(ctl);
    return code == PAY_CTL_OK ? run(ctl, command, argc - 1 - words, argv + 1 + words) : code;
}

/* The options that stand where a command would. @return false: it is none of them. */
static bool run_option(struct pay_ctl *ctl, const char *word, int *ret_code)
{
    *ret_code = PAY_CTL_OK;
    if (is_help(word)) {
        help_all(&ctl->out);
    } else if (strcmp(word, "--version") == 0) {
        pay_buf_add_c(&ctl->out, NAME " " PAY_VERSION "\n");
    } else if (strcmp(word, "--print-config-docs") == 0) {
        pay_cfg_print_docs(&pay_ctl_config, &ctl->out);
    } else if (strcmp(word, "--print-config") == 0) {
        *ret_code = load_settings(ctl);
        pay_cfg_print(&pay_ctl_config, &ctl->settings, &ctl->out);
    } else {
        return false;
    }
    return true;
}

int pay_ctl_main(int argc, char *const *argv)
{
    static struct pay_ctl ctl; /* the settings are too large for a stack frame */
    int code = PAY_CTL_USAGE;
    ctl = (struct pay_ctl){.out = pay_buf_make(PAY_CTL_OUTPUT_BYTES_MAX),
                           .more = pay_buf_make(PAY_CTL_OUTPUT_BYTES_MAX)};
    pay_log_init(NAME, PAY_LOG_WARN);
    if (argc < 2) {
        help_all(&ctl.more);
        write_all(stderr, &ctl.more);
    } else if (!run_option(&ctl, argv[1], &code)) {
        code = run_found(&ctl, argc, argv);
    }
    code = finish(&ctl, code);
    pay_buf_free(&ctl.out);
    pay_buf_free(&ctl.more);
    return code;
}
