/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_admin.h"

#include "common/base/assert.h"
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/io/kafka/kafka_internal.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "common/base/banned.h"

#define OPERATION_MS_MAX 60000
#define READY_POLL_NS 50000000L

struct pay_kafka_admin {
    rd_kafka_t *rk;
    rd_kafka_queue_t *answers;
};

enum pay_status pay_kafka_admin_new(const struct pay_kafka_conf *conf,
                                    struct pay_kafka_admin **ret_admin, struct pay_err *err)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_conf_t *rk_conf = NULL;
    enum pay_status status = pay_kafka_conf_build(conf, NULL, 0, &rk_conf, err);

    if (status != PAY_OK) {
        return status;
    }
    struct pay_kafka_admin *admin = pay_mem_new(1, sizeof *admin);
    if (admin == NULL) {
        rd_kafka_conf_destroy(rk_conf);
        return pay_err_set(err, PAY_RETRY, 0, "kafka admin", "out of memory");
    }
    admin->rk = rd_kafka_new(RD_KAFKA_PRODUCER, rk_conf, why, sizeof why);
    if (admin->rk == NULL) {
        rd_kafka_conf_destroy(rk_conf);
        pay_mem_free(admin);
        return pay_err_set(err, PAY_FATAL, 0, "kafka admin", "%s", why);
    }
    admin->answers = rd_kafka_queue_new(admin->rk);
    *ret_admin = admin;
    return PAY_OK;
}

struct pay_kafka_admin *pay_kafka_admin_free(struct pay_kafka_admin *admin)
{
    if (admin != NULL) {
        rd_kafka_queue_destroy(admin->answers);
        rd_kafka_destroy(admin->rk);
    }
    return pay_mem_free(admin);
}

static void read_info(const struct rd_kafka_metadata_topic *topic,
                      struct pay_kafka_topic_info *info)
{
    info->exists = true;
    info->partitions = topic->partition_cnt;
    info->replication = topic->partition_cnt > 0 ? topic->partitions[0].replica_cnt : 0;
    for (int i = 0; i < topic->partition_cnt; i++) {
        info->leaderless += topic->partitions[i].leader < 0 ? 1 : 0;
    }
}

/* All topics are asked for, because asking for an absent one may create it. */
enum pay_status pay_kafka_admin_describe(struct pay_kafka_admin *admin, const char *topic,
                                         int timeout_ms, struct pay_kafka_topic_info *ret_info,
                                         struct pay_err *err)
{
    const struct rd_kafka_metadata *metadata = NULL;
    struct pay_kafka_topic_info info = {0};
    rd_kafka_resp_err_t code = rd_kafka_metadata(admin->rk, 1, NULL, &metadata, timeout_ms);

    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return pay_kafka_fail(err, "kafka describe", code, rd_kafka_err2str(code));
    }
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const struct rd_kafka_metadata_topic *found = &metadata->topics[i];
        if (strcmp(found->topic, topic) == 0 &&
            found->err != RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART) {
            read_info(found, &info);
        }
    }
    rd_kafka_metadata_destroy(metadata);
    *ret_info = info;
    return PAY_OK;
}

static rd_kafka_AdminOptions_t *make_options(struct pay_kafka_admin *admin, rd_kafka_admin_op_t op,
                                             int timeout_ms)
{
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(admin->rk, op);
    int bounded_ms = timeout_ms < OPERATION_MS_MAX ? timeout_ms : OPERATION_MS_MAX;

    /* Both refuse only values that are out of range, which these are not. */
    (void)rd_kafka_AdminOptions_set_request_timeout(options, bounded_ms, why, sizeof why);
    if (op != RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS) {
        (void)rd_kafka_AdminOptions_set_operation_timeout(options, bounded_ms, why, sizeof why);
    }
    return options;
}

/* @param ret_event the caller's to destroy, also on failure; NULL: no answer. */
static enum pay_status wait_answer(struct pay_kafka_admin *admin, const char *op, int timeout_ms,
                                   rd_kafka_event_t **ret_event, struct pay_err *err)
{
    /* The request's own time-out comes first; the margin only covers its delivery. */
    *ret_event = rd_kafka_queue_poll(admin->answers, timeout_ms + 1000);
    if (*ret_event == NULL) {
        rd_kafka_queue_destroy(
            admin->answers); /* A late answer must not be taken for the next one. */
        admin->answers = rd_kafka_queue_new(admin->rk);
        return pay_err_set(err, PAY_RETRY, 0, op, "no answer within %d ms", timeout_ms);
    }
    rd_kafka_resp_err_t code = rd_kafka_event_error(*ret_event);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR
               ? PAY_OK
               : pay_kafka_fail(err, op, code, rd_kafka_event_error_string(*ret_event));
}

static enum pay_status topic_result(const rd_kafka_topic_result_t *result, const char *op,
                                    rd_kafka_resp_err_t fine, struct pay_err *err)
{
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(result);

    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == fine) {
        return PAY_OK;
    }
    return pay_kafka_fail(err, op, code, rd_kafka_topic_result_error_string(result));
}

static enum pay_status create(struct pay_kafka_admin *admin,
                              const struct pay_kafka_topic_spec *spec, int timeout_ms,
                              struct pay_err *err)
{
    static const char *const op = "kafka create topic";
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(spec->name, spec->partitions, spec->replication, why, sizeof why);

    if (topic == NULL) {
        return pay_err_set(err, PAY_REJECT, 0, op, "%s", why);
    }
    for (size_t i = 0; i < spec->config_count; i++) {
        /* Fails only for an empty name; the broker judges the rest. */
        (void)rd_kafka_NewTopic_set_config(topic, spec->configs[i].name, spec->configs[i].value);
    }
    rd_kafka_AdminOptions_t *options =
        make_options(admin, RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout_ms);
    rd_kafka_CreateTopics(admin->rk, &topic, 1, options, admin->answers);
    enum pay_status status = wait_answer(admin, op, timeout_ms, &event, err);
    if (status == PAY_OK) {
        const rd_kafka_topic_result_t **results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
        status = topic_result(results[0], op, RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS, err);
    }
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewTopic_destroy(topic);
    return status;
}

enum pay_status pay_kafka_admin_delete(struct pay_kafka_admin *admin, const char *topic,
                                       int timeout_ms, struct pay_err *err)
{
    static const char *const op = "kafka delete topic";
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    rd_kafka_DeleteTopic_t *target = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_AdminOptions_t *options =
        make_options(admin, RD_KAFKA_ADMIN_OP_DELETETOPICS, timeout_ms);

    rd_kafka_DeleteTopics(admin->rk, &target, 1, options, admin->answers);
    enum pay_status status = wait_answer(admin, op, timeout_ms, &event, err);
    if (status == PAY_OK) {
        const rd_kafka_topic_result_t **results =
            rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
        status = topic_result(results[0], op, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART, err);
    }
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_DeleteTopic_destroy(target);
    return status;
}

/* ---- differences ---- */

static void say(struct pay_buf *report, const char *topic, const char *what, const char *is,
                const char *wanted)
{
    if (report != NULL) {
        pay_buf_printf(report, "%s: %s is %s, wanted %s\n", topic, what, is, wanted);
    }
}

static void say_number(struct pay_buf *report, const char *topic, const char *what, int is,
                       int wanted)
{
    char is_text[16];
    char wanted_text[16];

    if (is != wanted) {
        (void)snprintf(is_text, sizeof is_text, "%d", is);
        (void)snprintf(wanted_text, sizeof wanted_text, "%d", wanted);
        say(report, topic, what, is_text, wanted_text);
    }
}

static const char *config_value(const rd_kafka_ConfigResource_t *resource, const char *name)
{
    size_t count = 0;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resource, &count);

    for (size_t i = 0; i < count; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), name) == 0) {
            const char *value = rd_kafka_ConfigEntry_value(entries[i]);
            return value != NULL ? value : "(hidden)";
        }
    }
    return "(absent)";
}

static enum pay_status say_configs(rd_kafka_event_t *event, const struct pay_kafka_topic_spec *spec,
                                   struct pay_buf *report, struct pay_err *err)
{
    size_t count = 0;
    const rd_kafka_ConfigResource_t **resources = rd_kafka_DescribeConfigs_result_resources(
        rd_kafka_event_DescribeConfigs_result(event), &count);
    rd_kafka_resp_err_t code =
        count == 1 ? rd_kafka_ConfigResource_error(resources[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;

    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return pay_kafka_fail(err, "kafka describe configs", code, rd_kafka_err2str(code));
    }
    for (size_t i = 0; i < spec->config_count; i++) {
        const char *is = config_value(resources[0], spec->configs[i].name);
        if (strcmp(is, spec->configs[i].value) != 0) {
            say(report, spec->name, spec->configs[i].name, is, spec->configs[i].value);
        }
    }
    return PAY_OK;
}

static enum pay_status compare_configs(struct pay_kafka_admin *admin,
                                       const struct pay_kafka_topic_spec *spec, int timeout_ms,
                                       struct pay_buf *report, struct pay_err *err)
{
    rd_kafka_event_t *event = NULL;
    rd_kafka_ConfigResource_t *resource =
        rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, spec->name);
    rd_kafka_AdminOptions_t *options =
        make_options(admin, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout_ms);

    rd_kafka_DescribeConfigs(admin->rk, &resource, 1, options, admin->answers);
    enum pay_status status = wait_answer(admin, "kafka describe configs", timeout_ms, &event, err);
    if (status == PAY_OK) {
        status = say_configs(event, spec, report, err);
    }
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_ConfigResource_destroy(resource);
    return status;
}

static enum pay_status check_partitions(const struct pay_kafka_topic_spec *spec,
                                        const struct pay_kafka_topic_info *info,
                                        struct pay_err *err)
{
    if (info->partitions == spec->partitions) {
        return PAY_OK;
    }
    return pay_err_set(err, PAY_REJECT, 0, "kafka topic", "'%s' has %d partitions, wanted %d",
                       spec->name, (int)info->partitions, (int)spec->partitions);
}

static enum pay_status compare(struct pay_kafka_admin *admin,
                               const struct pay_kafka_topic_spec *spec,
                               const struct pay_kafka_topic_info *info, int timeout_ms,
                               struct pay_buf *report, struct pay_err *err)
{
    say_number(report, spec->name, "partitions", info->partitions, spec->partitions);
    if (spec->replication >= 0) {
        say_number(report, spec->name, "replication", info->replication, spec->replication);
    }
    if (spec->config_count > 0) {
        enum pay_status status = compare_configs(admin, spec, timeout_ms, report, err);
        if (status != PAY_OK) {
            return status;
        }
    }
    return check_partitions(spec, info, err);
}

static int left_ms(int64_t end_us)
{
    int64_t left = (end_us - pay_clock_mono_us()) / 1000;

    return left < 0 ? 0 : (int)left;
}

/* Until the topic is known with @p least partitions or more, all of them led. */
static enum pay_status wait_ready(struct pay_kafka_admin *admin,
                                  const struct pay_kafka_topic_spec *spec, int32_t least,
                                  int64_t end_us, struct pay_err *err)
{
    const struct timespec pause = {.tv_nsec = READY_POLL_NS};
    struct pay_kafka_topic_info info = {0};
    bool ready = false;

    while (!ready && left_ms(end_us) > 0) {
        enum pay_status status =
            pay_kafka_admin_describe(admin, spec->name, left_ms(end_us), &info, err);
        if (status != PAY_OK && status != PAY_RETRY) {
            return status;
        }
        ready = status == PAY_OK && info.exists && info.partitions >= least && info.leaderless == 0;
        if (!ready) {
            (void)nanosleep(&pause, NULL);
        }
    }
    if (!ready) {
        return pay_err_set(err, PAY_RETRY, 0, "kafka topic", "'%s' is not ready in time",
                           spec->name);
    }
    return check_partitions(spec, &info, err); /* Somebody else may have created it otherwise. */
}

enum pay_status pay_kafka_admin_ensure(struct pay_kafka_admin *admin,
                                       const struct pay_kafka_topic_spec *spec, int timeout_ms,
                                       struct pay_buf *report, struct pay_err *err)
{
    int64_t end_us = pay_clock_mono_us() + (int64_t)timeout_ms * 1000;
    struct pay_kafka_topic_info info = {0};
    enum pay_status status = pay_kafka_admin_describe(admin, spec->name, timeout_ms, &info, err);

    PAY_ASSERT(spec->config_count <= PAY_KAFKA_TOPIC_CONFIGS_MAX);
    if (status != PAY_OK) {
        return status;
    }
    if (info.exists && info.leaderless == 0) {
        return compare(admin, spec, &info, left_ms(end_us), report, err);
    }
    if (!info.exists) {
        status = create(admin, spec, left_ms(end_us), err);
        if (status != PAY_OK) {
            return status;
        }
        if (report != NULL) {
            pay_buf_printf(report, "%s: created with %d partitions\n", spec->name,
                           (int)spec->partitions);
        }
    }
    return wait_ready(admin, spec, 1, end_us, err);
}

static enum pay_status create_partitions(struct pay_kafka_admin *admin, const char *topic,
                                         int32_t partitions, int timeout_ms, struct pay_err *err)
{
    static const char *const op = "kafka create partitions";
    char why[PAY_KAFKA_ERRSTR_BYTES];
    rd_kafka_event_t *event = NULL;
    size_t count = 0;
    rd_kafka_NewPartitions_t *more =
        rd_kafka_NewPartitions_new(topic, (size_t)partitions, why, sizeof why);

    if (more == NULL) {
        return pay_err_set(err, PAY_REJECT, 0, op, "%s", why);
    }
    rd_kafka_AdminOptions_t *options =
        make_options(admin, RD_KAFKA_ADMIN_OP_CREATEPARTITIONS, timeout_ms);
    rd_kafka_CreatePartitions(admin->rk, &more, 1, options, admin->answers);
    enum pay_status status = wait_answer(admin, op, timeout_ms, &event, err);
    if (status == PAY_OK) {
        const rd_kafka_topic_result_t **results = rd_kafka_CreatePartitions_result_topics(
            rd_kafka_event_CreatePartitions_result(event), &count);
        status = topic_result(results[0], op, RD_KAFKA_RESP_ERR_NO_ERROR, err);
    }
    rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_NewPartitions_destroy(more);
    return status;
}

enum pay_status pay_kafka_admin_grow(struct pay_kafka_admin *admin, const char *topic,
                                     int32_t partitions, int timeout_ms, struct pay_err *err)
{
    const int64_t end_us = pay_clock_mono_us() + (int64_t)timeout_ms * 1000;
    const struct pay_kafka_topic_spec spec = {.name = topic, .partitions = partitions};
    enum pay_status status = create_partitions(admin, topic, partitions, timeout_ms, err);

    return status == PAY_OK ? wait_ready(admin, &spec, partitions, end_us, err) : status;
}
