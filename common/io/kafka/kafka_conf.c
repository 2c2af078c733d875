/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_conf.h"

#include "common/base/buf.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/io/kafka/kafka_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "common/base/banned.h"

#define NAME_BYTES_MAX 128
#define VALUE_BYTES_MAX 8192
#define SCRAM_WORKS_FROM 0x020601ff

static const char *const op = "kafka properties";

/* What our guarantees and bounds rest on; aliases of librdkafka included. */
static const char *const ours[] = {
    "acks",
    "request.required.acks",
    "enable.idempotence",
    "max.in.flight.requests.per.connection",
    "max.in.flight",
    "transactional.id",
    "partitioner",
    "message.timeout.ms",
    "delivery.timeout.ms",
    "message.max.bytes",
    "batch.size",
    "queue.buffering.max.messages",
    "queue.buffering.max.kbytes",
    "queue.buffering.max.ms",
    "linger.ms",
    "group.id",
    "group.instance.id",
    "session.timeout.ms",
    "max.poll.interval.ms",
    "enable.auto.commit",
    "auto.commit.enable",
    "enable.auto.offset.store",
    "auto.offset.reset",
    "queued.max.messages.kbytes",
    "fetch.max.bytes",
    "allow.auto.create.topics",
};

/* Set first, so that a property of the user wins. */
static const struct pay_kafka_setting defaults[] = {
    {"socket.nagle.disable", "true", 0},     {"socket.keepalive.enable", "true", 0},
    {"reconnect.backoff.max.ms", "2000", 0}, {"check.crcs", "true", 0},
    {"fetch.error.backoff.ms", "100", 0},
};

static bool is_ours(const char *name)
{
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (strcmp(ours[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The value is never quoted: it may be a password. */
static enum pay_status set(rd_kafka_conf_t *conf, const char *name, const char *value,
                           struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_conf_res_t res = rd_kafka_conf_set(conf, name, value, why, sizeof why);

    if (res == RD_KAFKA_CONF_OK) {
        return PAY_OK;
    }
    return pay_err_set(err, PAY_FATAL, 0, op, "%s: %s", name,
                       res == RD_KAFKA_CONF_UNKNOWN ? "no such property in this librdkafka"
                                                    : "value is not valid");
}

static enum pay_status set_all(rd_kafka_conf_t *conf, const struct pay_kafka_setting *settings,
                               size_t count, struct pay_err *err)
{
    char number[24];

    for (size_t i = 0; i < count; i++) {
        const char *text = settings[i].text;
        if (text == NULL) {
            (void)snprintf(number, sizeof number, "%" PRId64, settings[i].number);
            text = number;
        }
        enum pay_status status = set(conf, settings[i].name, text, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    return PAY_OK;
}

static struct pay_str trim(struct pay_str text)
{
    while (text.len > 0 && strchr(" \t\r", text.ptr[0]) != NULL) {
        text.ptr++;
        text.len--;
    }
    while (text.len > 0 && strchr(" \t\r", text.ptr[text.len - 1]) != NULL) {
        text.len--;
    }
    return text;
}

static enum pay_status set_line(rd_kafka_conf_t *conf, struct pay_str line, int number,
                                struct pay_err *err)
{
    char name[NAME_BYTES_MAX];
    char value[VALUE_BYTES_MAX];

    line = trim(line);
    if (line.len == 0 || line.ptr[0] == '#') {
        return PAY_OK;
    }
    const char *equals = memchr(line.ptr, '=', line.len);
    if (equals == NULL) {
        return pay_err_set(err, PAY_FATAL, 0, op, "line %d is not \"name=value\"", number);
    }
    size_t name_len = (size_t)(equals - line.ptr);
    if (!pay_str_copy(name, sizeof name, trim((struct pay_str){line.ptr, name_len})) ||
        !pay_str_copy(value, sizeof value,
                      trim((struct pay_str){equals + 1, line.len - name_len - 1}))) {
        return pay_err_set(err, PAY_FATAL, 0, op, "line %d is too long", number);
    }
    if (is_ours(name)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "%s is fixed by payfact: remove it", name);
    }
    return set(conf, name, value, err);
}

static enum pay_status set_lines(rd_kafka_conf_t *conf, const char *text, struct pay_err *err)
{
    enum pay_status status = PAY_OK;

    for (int number = 1; text != NULL && status == PAY_OK && *text != 0; number++) {
        size_t len = strcspn(text, "\n");
        status = set_line(conf, (struct pay_str){text, len}, number, err);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
    return status;
}

static enum pay_status set_file(rd_kafka_conf_t *conf, const char *path, struct pay_err *err)
{
    if (path == NULL || path[0] == 0) {
        return PAY_OK;
    }
    struct pay_buf text = pay_buf_make(PAY_KAFKA_PROPERTIES_BYTES_MAX);
    enum pay_status status = pay_file_read_buf(path, &text, err);
    if (status == PAY_OK) {
        pay_buf_add_char(&text, '\n'); /* Also ends an empty file's text. */
        status = text.failed ? pay_err_set(err, PAY_FATAL, 0, op, "properties file is too long")
                             : set_lines(conf, (const char *)text.data, err);
    }
    pay_buf_free(&text);
    return status;
}

static bool get(const rd_kafka_conf_t *conf, const char *name, char *dst, size_t dst_size)
{
    size_t size = dst_size;

    dst[0] = 0;
    return rd_kafka_conf_get(conf, name, dst, &size) == RD_KAFKA_CONF_OK && dst[0] != 0;
}

/* What would only be seen as a login that never works. */
static enum pay_status check_whole(const rd_kafka_conf_t *conf, struct pay_err *err)
{
    char text[VALUE_BYTES_MAX];

    if (!get(conf, "bootstrap.servers", text, sizeof text) &&
        (!get(conf, "test.mock.num.brokers", text, sizeof text) || strcmp(text, "0") == 0)) {
        return pay_err_set(err, PAY_FATAL, 0, op, "bootstrap.servers is not set");
    }
    if (get(conf, "sasl.mechanisms", text, sizeof text) && strncasecmp(text, "SCRAM", 5) == 0 &&
        rd_kafka_version() < SCRAM_WORKS_FROM) {
        return pay_err_set(err, PAY_FATAL, 0, op,
                           "SCRAM needs librdkafka 2.6.1, this is %s: it cannot log in to Kafka 4",
                           rd_kafka_version_str());
    }
    return PAY_OK;
}

static enum pay_status fill(rd_kafka_conf_t *rk_conf, const struct pay_kafka_conf *conf,
                            struct pay_err *err)
{
    enum pay_status status = set_all(rk_conf, defaults, sizeof defaults / sizeof defaults[0], err);

    if (status == PAY_OK) {
        status = set(rk_conf, "partition.assignment.strategy",
                     rd_kafka_version() >= PAY_KAFKA_COOPERATIVE_FROM ? "cooperative-sticky"
                                                                      : "range,roundrobin",
                     err);
    }
    if (status == PAY_OK && conf->client_id != NULL && conf->client_id[0] != 0) {
        status = set(rk_conf, "client.id", conf->client_id, err);
    }
    if (status == PAY_OK && conf->bootstrap != NULL && conf->bootstrap[0] != 0) {
        status = set(rk_conf, "bootstrap.servers", conf->bootstrap, err);
    }
    if (status == PAY_OK) {
        status = set_lines(rk_conf, conf->properties, err);
    }
    if (status == PAY_OK) {
        status = set_file(rk_conf, conf->properties_file, err);
    }
    return status == PAY_OK ? check_whole(rk_conf, err) : status;
}

enum pay_status pay_kafka_conf_build(const struct pay_kafka_conf *conf,
                                     const struct pay_kafka_setting *settings, size_t count,
                                     rd_kafka_conf_t **ret_conf, struct pay_err *err)
{
    rd_kafka_conf_t *rk_conf = rd_kafka_conf_new();
    enum pay_status status = fill(rk_conf, conf, err);

    if (status == PAY_OK) {
        status = set_all(rk_conf, settings, count, err);
    }
    if (status != PAY_OK) {
        rd_kafka_conf_destroy(rk_conf);
        return status;
    }
    rd_kafka_conf_set_log_cb(rk_conf, pay_kafka_log);
    *ret_conf = rk_conf;
    return PAY_OK;
}

enum pay_status pay_kafka_conf_check(const struct pay_kafka_conf *conf, struct pay_err *err)
{
    rd_kafka_conf_t *rk_conf = NULL;
    enum pay_status status = pay_kafka_conf_build(conf, NULL, 0, &rk_conf, err);

    if (status == PAY_OK) {
        rd_kafka_conf_destroy(rk_conf);
    }
    return status;
}

const char *pay_kafka_library_version(void)
{
    return rd_kafka_version_str();
}

/* ---- what every client of this folder does with errors ---- */

void pay_kafka_log(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    pay_log(PAY_LOG_DEBUG, "kafka_client", PAY_F_STR("client", rk != NULL ? rd_kafka_name(rk) : ""),
            PAY_F_INT("syslog_level", level), PAY_F_STR("facility", facility),
            PAY_F_STR("text", text));
}

void pay_kafka_note_error(struct pay_kafka_note *note, int code, const char *text)
{
    (void)pthread_mutex_lock(&note->lock);
    (void)pay_kafka_fail(&note->err, "kafka client", code, text);
    note->is_set = true;
    (void)pthread_mutex_unlock(&note->lock);
}

bool pay_kafka_note_take(struct pay_kafka_note *note, struct pay_err *ret_err)
{
    (void)pthread_mutex_lock(&note->lock);
    bool is_set = note->is_set;
    if (is_set && ret_err != NULL) {
        *ret_err = note->err;
    }
    note->is_set = false;
    (void)pthread_mutex_unlock(&note->lock);
    return is_set;
}

enum pay_status pay_kafka_fail(struct pay_err *err, const char *what, int code, const char *text)
{
    return pay_err_set(err, pay_kafka_client_class(code), code, what, "%s: %s",
                       pay_kafka_error_name(code), text != NULL ? text : "");
}

enum pay_status pay_kafka_metadata(rd_kafka_t *rk, rd_kafka_topic_t *topic, int timeout_ms,
                                   const struct rd_kafka_metadata **ret_metadata,
                                   struct pay_err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_metadata(rk, 0, topic, ret_metadata, timeout_ms);

    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? PAY_OK
               : pay_kafka_fail(err, "kafka metadata", code, rd_kafka_err2str(code));
}
