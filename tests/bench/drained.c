/* SPDX-License-Identifier: Apache-2.0 */
/* bench-drained: reads a topic to its end and checks what the publisher has put there.
 *
 *   bench-drained BROKERS TOPIC ROWS KEYS
 *
 * A record begins with the number of its row, 8 bytes, big endian, from 1; rows of one number
 * modulo KEYS have one key. Every row must be there and no key's row before an earlier one. The
 * times are the broker's (LogAppendTime).
 */
#include <librdkafka/rdkafka.h>
#include <stdbool.h>

#include "tests/bench/bench.h"

#define POLL_MS 10000

struct seen {
    int64_t rows, keys;
    bool *there;
    int64_t *last; /* Of each key. */
    int64_t records, distinct, disorder, first_ms, last_ms;
};

static int64_t row_of(const rd_kafka_message_t *msg)
{
    const unsigned char *at = msg->payload;
    int64_t row = 0;
    for (size_t i = 0; i < 8 && msg->len >= 8; i++) {
        row = row << 8 | at[i];
    }
    return row;
}

static void note(struct seen *seen, const rd_kafka_message_t *msg)
{
    const int64_t at_ms = rd_kafka_message_timestamp(msg, NULL);
    const int64_t row = row_of(msg);
    if (row < 1 || row > seen->rows) {
        bench_fail("record", "is of no row");
    }
    seen->first_ms = seen->records == 0 || at_ms < seen->first_ms ? at_ms : seen->first_ms;
    seen->last_ms = at_ms > seen->last_ms ? at_ms : seen->last_ms;
    seen->records++;
    seen->distinct += seen->there[row] ? 0 : 1;
    seen->disorder += row < seen->last[row % seen->keys] ? 1 : 0;
    seen->there[row] = true;
    seen->last[row % seen->keys] = row;
}

static rd_kafka_t *open_consumer(const char *brokers)
{
    static const char *const settings[][2] = {{"group.id", "bench-drained"},
                                              {"enable.auto.commit", "false"},
                                              {"check.crcs", "false"},
                                              {"fetch.wait.max.ms", "5"}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        (void)rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why);
    }
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
    rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (consumer == NULL) {
        bench_fail("consumer", why);
    }
    (void)rd_kafka_poll_set_consumer(consumer);
    return consumer;
}

/* @return records that there are now. */
static int64_t assign_all(rd_kafka_t *consumer, const char *name)
{
    const struct rd_kafka_metadata *metadata = NULL;
    int64_t records = 0;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(consumer, name, NULL);
    const rd_kafka_resp_err_t code = rd_kafka_metadata(consumer, 0, topic, &metadata, POLL_MS);
    if (code != 0 || metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt == 0) {
        bench_fail(name, code != 0 ? rd_kafka_err2str(code) : "no such topic");
    }
    const int count = metadata->topics[0].partition_cnt;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(count);
    for (int32_t p = 0; p < count; p++) {
        int64_t low = 0;
        int64_t high = 0;
        if (rd_kafka_query_watermark_offsets(consumer, name, p, &low, &high, POLL_MS) != 0) {
            bench_fail(name, "has no end");
        }
        records += high - low;
        rd_kafka_topic_partition_list_add(list, name, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    }
    (void)rd_kafka_assign(consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
    return records;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        bench_fail("usage", "bench-drained BROKERS TOPIC ROWS KEYS");
    }
    struct seen seen = {.rows = bench_number(argv[3]), .keys = bench_number(argv[4])};
    seen.there = calloc((size_t)seen.rows + 1, sizeof *seen.there);
    seen.last = calloc((size_t)seen.keys + 1, sizeof *seen.last);
    if (seen.keys == 0 || seen.there == NULL || seen.last == NULL) {
        bench_fail("usage", "no keys, or no memory");
    }
    rd_kafka_t *consumer = open_consumer(argv[1]);
    const int64_t records = assign_all(consumer, argv[2]);
    while (seen.records < records) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(consumer, POLL_MS);
        if (msg == NULL || msg->err != 0) {
            bench_fail(argv[2], msg == NULL ? "has fewer records than it said"
                                            : rd_kafka_message_errstr(msg));
        }
        note(&seen, msg);
        rd_kafka_message_destroy(msg);
    }
    (void)printf("records=%lld distinct=%lld disorder=%lld first_ms=%lld last_ms=%lld\n",
                 (long long)seen.records, (long long)seen.distinct, (long long)seen.disorder,
                 (long long)seen.first_ms, (long long)seen.last_ms);
    (void)rd_kafka_consumer_close(consumer);
    rd_kafka_destroy(consumer);
    free(seen.there);
    free(seen.last);
    return seen.distinct == seen.rows && seen.disorder == 0 ? 0 : 1;
}
