/* SPDX-License-Identifier: Apache-2.0 */
/** @file mock-broker.c @brief The demo's embedded broker: librdkafka's mock cluster in its own
 * process.
 *
 *   payfact-mock-broker [-b BROKERS] TOPIC:PARTITIONS...
 *
 * Creates the topics, prints one line (the bootstrap servers, ports chosen by the kernel on
 * 127.0.0.1) and serves until SIGTERM or SIGINT. Everything is in memory and gone at exit. Good for
 * idempotent produce, groups and commits across processes without a JVM. No TLS, no authentication,
 * no compaction; a partition keeps only its newest 5 MB; a topic that was not named is made at
 * first use with 4 partitions (a limit of the library).
 */
#include <errno.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/banned.h"

enum { BROKERS_MAX = 9, PARTITIONS_MAX = 1000, REPLICATION_MAX = 3, LOG_LEVEL_SHOWN = 4 };

static void log_warnings(const rd_kafka_t *rk, int level, const char *fac, const char *msg)
{
    if (level <= LOG_LEVEL_SHOWN) {
        (void)fprintf(stderr, "payfact-mock-broker: %s: %s: %s\n", rk ? rd_kafka_name(rk) : "-",
                      fac, msg);
    }
}

static int complain(const char *subject, const char *why)
{
    (void)fprintf(stderr, "payfact-mock-broker: '%s': %s\n", subject, why);
    return -1;
}

/** @return the number, or -1 when the text is not a whole number from 1 to max. */
static int read_count(const char *text, int max)
{
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1 || value > max) {
        return -1;
    }
    return (int)value;
}

/* SPEC is NAME:PARTITIONS; Kafka's topic names have no colon. */
static int create_topic(rd_kafka_mock_cluster_t *cluster, char *spec, int brokers)
{
    char *colon = strchr(spec, ':');
    int partitions = colon ? read_count(colon + 1, PARTITIONS_MAX) : -1;
    if (partitions < 0 || colon == spec) {
        return complain(spec, "expected TOPIC:PARTITIONS");
    }
    *colon = '\0';
    int replicas = brokers < REPLICATION_MAX ? brokers : REPLICATION_MAX;
    rd_kafka_resp_err_t code = rd_kafka_mock_topic_create(cluster, spec, partitions, replicas);
    return code ? complain(spec, rd_kafka_err2str(code)) : 0;
}

/* Blocked before the library starts its threads, so that they inherit the mask and sigwait() gets
 * the signal. */
static void block_stop_signals(sigset_t *ret_stop)
{
    (void)sigemptyset(ret_stop);
    (void)sigaddset(ret_stop, SIGTERM);
    (void)sigaddset(ret_stop, SIGINT);
    (void)pthread_sigmask(SIG_BLOCK, ret_stop, NULL);
}

static int serve(rd_kafka_mock_cluster_t *cluster, const sigset_t *stop)
{
    int caught = 0;
    if (printf("%s\n", rd_kafka_mock_cluster_bootstraps(cluster)) < 0 || fflush(stdout) != 0) {
        return complain("standard output", "cannot be written");
    }
    return sigwait(stop, &caught) == 0 ? 0 : complain("sigwait", "failed");
}

static int run(int brokers, char **specs, const sigset_t *stop)
{
    char text[512] = "";
    int result = -1;
    rd_kafka_mock_cluster_t *cluster = NULL;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set_log_cb(conf, log_warnings);
    /* The cluster hangs on a client handle, which itself connects nowhere. */
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (!rk) {
        rd_kafka_conf_destroy(conf);
        return complain("rd_kafka_new", text);
    }
    cluster = rd_kafka_mock_cluster_new(rk, brokers);
    if (!cluster) {
        (void)complain("rd_kafka_mock_cluster_new", "failed");
        goto out;
    }
    for (char **spec = specs; *spec; spec++) {
        if (create_topic(cluster, *spec, brokers) != 0) {
            goto out;
        }
    }
    result = serve(cluster, stop);
out:
    if (cluster) {
        rd_kafka_mock_cluster_destroy(cluster);
    }
    rd_kafka_destroy(rk);
    return result;
}

int main(int argc, char **argv)
{
    sigset_t stop;
    int brokers = 1;
    int option = 0;
    block_stop_signals(&stop);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread exists yet */
    while ((option = getopt(argc, argv, "b:")) != -1) {
        brokers = option == 'b' ? read_count(optarg, BROKERS_MAX) : -1;
        if (brokers < 0) {
            (void)fprintf(stderr, "usage: payfact-mock-broker [-b 1..%d] TOPIC:PARTITIONS...\n",
                          BROKERS_MAX);
            return 2;
        }
    }
    return run(brokers, argv + optind, &stop) == 0 ? 0 : 1;
}
