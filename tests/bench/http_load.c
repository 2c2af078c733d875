/* SPDX-License-Identifier: Apache-2.0 */
/* bench-http: signed callbacks over kept-open connections, made before the clock starts.
 *
 *   bench-http PORT PATH BODY_FILE SECRET FIRST COUNT CONNECTIONS [RATE [BROKERS TOPIC]]
 *
 * BODY_FILE is a callback with '@' x 24 wherever the payment's number belongs. The signature is
 * Stripe's. RATE 0: as fast as answers come. Else so many a second by the clock, whether answers
 * come or not, and a latency counts from the moment that its request was due. With a TOPIC, the
 * first event of each payment is waited for, and that latency is reported as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "tests/bench/bench.h"

#define NUMBER_DIGITS 24
#define CONNECTIONS_MAX 1024
#define ANSWER_BYTES 4096
#define BODY_BYTES_MAX 16384
#define WARM_UP_S 5 /* Of a paced run: sent, not counted. */
#define EVENTS_WAIT_US INT64_C(60000000)

struct connection {
    int fd;
    int64_t request; /* -1: free. */
    size_t put;
    char answer[ANSWER_BYTES];
    size_t got;
};

static struct {
    struct sockaddr_in address;
    const char *path, *secret, *topic;
    char body[BODY_BYTES_MAX];
    size_t body_len;
    char *requests; /* Count of them, each request_len bytes. */
    size_t request_len;
    int64_t first, count, rate;
    int64_t *due_us, *answered_us, *arrived_us;
    struct connection connections[CONNECTIONS_MAX];
    size_t connection_count;
    int epoll;
    int64_t sent, answered, refused, started_us;
    rd_kafka_t *consumer;
    atomic_llong arrived;
    atomic_bool stop;
} load;

/* ---- requests ---- */

static void read_body(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        bench_fail(path, "cannot be read");
    }
    load.body_len = fread(load.body, 1, sizeof load.body - 1, file);
    if (load.body_len == 0 || fclose(file) != 0 || load.body_len == sizeof load.body - 1) {
        bench_fail(path, "is empty or too large");
    }
}

static void put_number(char *body, int64_t number)
{
    char digits[NUMBER_DIGITS + 1];
    char mark[NUMBER_DIGITS + 1];
    memset(mark, '@', NUMBER_DIGITS);
    mark[NUMBER_DIGITS] = '\0';
    (void)snprintf(digits, sizeof digits, "%0*lld", NUMBER_DIGITS, (long long)number);
    for (char *at = strstr(body, mark); at != NULL; at = strstr(at, mark)) {
        memcpy(at, digits, NUMBER_DIGITS);
    }
}

static void sign(const char *body, long long now_s, char hex[65])
{
    unsigned char mac[32];
    unsigned mac_len = sizeof mac;
    char prefix[24];
    char text[BODY_BYTES_MAX + sizeof prefix];
    const int prefix_len = snprintf(prefix, sizeof prefix, "%lld.", now_s);
    memcpy(text, prefix, (size_t)prefix_len);
    memcpy(text + prefix_len, body, load.body_len);
    (void)HMAC(EVP_sha256(), load.secret, (int)strlen(load.secret), (const unsigned char *)text,
               (size_t)prefix_len + load.body_len, mac, &mac_len);
    for (unsigned i = 0; i < mac_len; i++) {
        (void)snprintf(hex + 2 * (size_t)i, 3, "%02x", mac[i]);
    }
}

/* All have one length: numbers have as many digits as they have room. */
static size_t make_request(int64_t index, char *request, size_t size)
{
    char hex[65];
    char body[BODY_BYTES_MAX];
    const long long now_s = bench_now_us() / 1000000;
    memcpy(body, load.body, load.body_len + 1);
    put_number(body, load.first + index);
    sign(body, now_s, hex);
    const int len = snprintf(request, size,
                             "POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                             "Content-Type: application/json; charset=utf-8\r\n"
                             "User-Agent: Stripe/1.0 (+https://stripe.com/docs/webhooks)\r\n"
                             "Accept: */*; q=0.5, application/xml\r\n"
                             "Stripe-Signature: t=%lld,v1=%s\r\nContent-Length: %zu\r\n\r\n%s",
                             load.path, now_s, hex, load.body_len, body);
    return (size_t)len;
}

static void make_requests(void)
{
    load.request_len = make_request(0, NULL, 0);
    load.requests = pay_mem_new((size_t)load.count + 1, load.request_len);
    if (load.requests == NULL) {
        bench_fail("requests", "memory is out");
    }
    for (int64_t i = 0; i < load.count; i++) {
        /* The terminator lies where the next one begins. */
        const size_t len =
            make_request(i, load.requests + (size_t)i * load.request_len, load.request_len + 1);
        if (len != load.request_len) {
            bench_fail("requests", "are not of one length");
        }
    }
}

/* ---- connections ---- */

static void open_connection(struct connection *connection)
{
    const int on = 1;
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = connection}};
    connection->request = -1;
    connection->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (connection->fd < 0 ||
        connect(connection->fd, (struct sockaddr *)&load.address, sizeof load.address) != 0 ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
        fcntl(connection->fd, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(load.epoll, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
        bench_fail("connection", "cannot be made");
    }
}

static void watch(struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data = {.ptr = connection}};
    (void)epoll_ctl(load.epoll, EPOLL_CTL_MOD, connection->fd, &event);
}

static void push(struct connection *connection)
{
    const char *request = load.requests + (size_t)connection->request * load.request_len;
    while (connection->put < load.request_len) {
        const ssize_t put = send(connection->fd, request + connection->put,
                                 load.request_len - connection->put, MSG_NOSIGNAL);
        if (put < 0 && errno == EAGAIN) {
            watch(connection, EPOLLIN | EPOLLOUT);
            return;
        }
        if (put <= 0) {
            bench_fail("send", "the server closed a connection");
        }
        connection->put += (size_t)put;
    }
}

static void send_next(struct connection *connection)
{
    connection->request = load.sent++;
    connection->put = connection->got = 0;
    if (load.rate == 0) {
        load.due_us[connection->request] = bench_now_us();
    }
    push(connection);
}

/* @return false: more is to come. */
static bool take_answer(struct connection *connection)
{
    static const char length_name[] = "Content-Length: ";
    connection->answer[connection->got] = '\0';
    const char *end = strstr(connection->answer, "\r\n\r\n");
    const char *length = strstr(connection->answer, length_name);
    if (end == NULL) {
        return false;
    }
    const size_t body = length != NULL && length < end
                            ? (size_t)strtoull(length + strlen(length_name), NULL, 10)
                            : 0;
    if (connection->got < (size_t)(end + 4 - connection->answer) + body) {
        return false;
    }
    load.refused += connection->answer[9] == '2' ? 0 : 1;
    load.answered_us[connection->request] = bench_now_us();
    load.answered++;
    connection->request = -1;
    return true;
}

/* @return false: more is to come. */
static bool pull(struct connection *connection)
{
    const ssize_t got = recv(connection->fd, connection->answer + connection->got,
                             sizeof connection->answer - 1 - connection->got, 0);
    if (got < 0 && errno == EAGAIN) {
        return false;
    }
    if (got <= 0 || connection->request < 0) {
        bench_fail("receive", "the server closed a connection, or answered what was not asked");
    }
    connection->got += (size_t)got;
    return take_answer(connection);
}

static bool may_send(void)
{
    return load.sent < load.count && (load.rate == 0 || load.due_us[load.sent] <= bench_now_us());
}

static void serve(int timeout_ms)
{
    struct epoll_event events[256];
    const int count = epoll_wait(load.epoll, events, 256, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct connection *connection = events[i].data.ptr;
        if ((events[i].events & EPOLLOUT) != 0 && connection->request >= 0) {
            watch(connection, EPOLLIN);
            push(connection);
        }
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && pull(connection) && may_send()) {
            send_next(connection);
        }
    }
}

static void send_free(void)
{
    for (size_t i = 0; i < load.connection_count && may_send(); i++) {
        if (load.connections[i].request < 0) {
            send_next(&load.connections[i]);
        }
    }
}

/* Sleeps by the clock between two requests that are due; epoll alone counts in milliseconds. */
static int wait_ms(void)
{
    if (load.rate == 0 || load.sent == load.count) {
        return 1000;
    }
    const int64_t left_us = load.due_us[load.sent] - bench_now_us();
    return left_us > 1000 ? 1 : 0;
}

static void run(void)
{
    load.started_us = bench_now_us();
    for (int64_t i = 0; load.rate > 0 && i < load.count; i++) {
        load.due_us[i] = load.started_us + i * 1000000 / load.rate;
    }
    while (load.answered < load.count) {
        send_free();
        serve(wait_ms());
    }
}

/* ---- events ---- */

static void *consume(void *unused)
{
    (void)unused;
    while (!atomic_load(&load.stop)) {
        rd_kafka_message_t *msg = rd_kafka_consumer_poll(load.consumer, 100);
        if (msg == NULL) {
            continue;
        }
        if (msg->err == 0 && msg->key_len == 2 + NUMBER_DIGITS) {
            char key[NUMBER_DIGITS + 1];
            memcpy(key, (const char *)msg->key + 2, NUMBER_DIGITS);
            key[NUMBER_DIGITS] = '\0';
            const int64_t index = strtoll(key, NULL, 10) - load.first;
            if (index >= 0 && index < load.count && load.arrived_us[index] == 0) {
                load.arrived_us[index] = bench_now_us();
                atomic_fetch_add(&load.arrived, 1);
            }
        }
        rd_kafka_message_destroy(msg);
    }
    return NULL;
}

/* A topic that was just made has no leader for a moment. */
static int64_t end_of(int32_t partition)
{
    int64_t low = 0;
    int64_t high = 0;
    rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR_NO_ERROR;
    for (int tries = 0; tries < 100; tries++) {
        code = rd_kafka_query_watermark_offsets(load.consumer, load.topic, partition, &low, &high,
                                                10000);
        if (code == 0) {
            return high;
        }
        (void)usleep(100000);
    }
    bench_fail(load.topic, rd_kafka_err2str(code));
}

static void assign_ends(void)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_topic_t *topic = rd_kafka_topic_new(load.consumer, load.topic, NULL);
    rd_kafka_resp_err_t code = rd_kafka_metadata(load.consumer, 0, topic, &metadata, 10000);
    if (code != 0 || metadata->topic_cnt != 1 || metadata->topics[0].partition_cnt == 0) {
        bench_fail(load.topic, code != 0 ? rd_kafka_err2str(code) : "no such topic");
    }
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new(metadata->topics[0].partition_cnt);
    for (int32_t p = 0; p < metadata->topics[0].partition_cnt; p++) {
        rd_kafka_topic_partition_list_add(list, load.topic, p)->offset = end_of(p);
    }
    (void)rd_kafka_assign(load.consumer, list);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(topic);
}

static void open_consumer(const char *brokers)
{
    static const char *const settings[][2] = {
        {"group.id", "bench-http"}, {"enable.auto.commit", "false"}, {"fetch.wait.max.ms", "5"}};
    char why[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        (void)rd_kafka_conf_set(conf, settings[i][0], settings[i][1], why, sizeof why);
    }
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", brokers, why, sizeof why);
    load.consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (load.consumer == NULL) {
        bench_fail("consumer", why);
    }
    (void)rd_kafka_poll_set_consumer(load.consumer);
    assign_ends();
}

/* ---- the result ---- */

static int by_value(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left;
    const int64_t b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

static void tell(const char *name, const int64_t *until_us)
{
    int64_t *took = calloc((size_t)load.count, sizeof *took);
    const int64_t from = load.rate * WARM_UP_S < load.count ? load.rate * WARM_UP_S : 0;
    size_t count = 0;
    for (int64_t i = from; took != NULL && i < load.count; i++) {
        if (until_us[i] > 0 && until_us[i] < load.due_us[i]) {
            bench_fail(name, "came before its callback: it is another one's");
        }
        if (until_us[i] > 0) {
            took[count++] = until_us[i] - load.due_us[i];
        }
    }
    if (count > 0) {
        const size_t p50 = count / 2;
        const size_t p99 = count * 99 / 100;
        qsort(took, count, sizeof *took, by_value);
        (void)printf(" %s_ms_p50=%.3f %s_ms_p99=%.3f %s_ms_max=%.3f", name, (double)took[p50] / 1e3,
                     name, (double)took[p99] / 1e3, name, (double)took[count - 1] / 1e3);
    }
    free(took);
}

static void wait_events(pthread_t thread)
{
    const int64_t until_us = bench_now_us() + EVENTS_WAIT_US;
    while (atomic_load(&load.arrived) < load.count && bench_now_us() < until_us) {
        (void)usleep(10000);
    }
    atomic_store(&load.stop, true);
    (void)pthread_join(thread, NULL);
    (void)rd_kafka_consumer_close(load.consumer);
    rd_kafka_destroy(load.consumer);
}

static void read_arguments(int argc, char **argv)
{
    if (argc < 8 || argc == 10 || argc > 11) {
        bench_fail("usage", "bench-http PORT PATH BODY_FILE SECRET FIRST COUNT CONNECTIONS"
                            " [RATE [BROKERS TOPIC]]");
    }
    load.address = (struct sockaddr_in){.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)bench_number(argv[1])),
                                        .sin_addr = {htonl(INADDR_LOOPBACK)}};
    load.path = argv[2];
    load.secret = argv[4];
    load.first = bench_number(argv[5]);
    load.count = bench_number(argv[6]);
    load.connection_count = (size_t)bench_number(argv[7]);
    load.rate = argc > 8 ? bench_number(argv[8]) : 0;
    load.topic = argc > 10 ? argv[10] : NULL;
    load.due_us = calloc((size_t)load.count, sizeof(int64_t));
    load.answered_us = calloc((size_t)load.count, sizeof(int64_t));
    load.arrived_us = calloc((size_t)load.count, sizeof(int64_t));
    if (load.count == 0 || load.connection_count > CONNECTIONS_MAX || load.due_us == NULL ||
        load.answered_us == NULL || load.arrived_us == NULL) {
        bench_fail("usage", "no request, too many connections, or no memory");
    }
    read_body(argv[3]);
}

int main(int argc, char **argv)
{
    pthread_t consumer = pthread_self();
    read_arguments(argc, argv);
    make_requests();
    load.epoll = epoll_create1(0);
    for (size_t i = 0; i < load.connection_count; i++) {
        open_connection(&load.connections[i]);
    }
    if (load.topic != NULL) {
        open_consumer(argv[9]);
        if (pthread_create(&consumer, NULL, consume, NULL) != 0) {
            bench_fail("thread", "cannot be made");
        }
    }
    run();
    const double seconds = (double)(bench_now_us() - load.started_us) / 1e6;
    if (load.topic != NULL) {
        wait_events(consumer);
    }
    (void)printf("requests=%lld refused=%lld seconds=%.6f rate=%.1f arrived=%lld",
                 (long long)load.answered, (long long)load.refused, seconds,
                 (double)load.answered / seconds, (long long)atomic_load(&load.arrived));
    tell("answer", load.answered_us);
    if (load.topic != NULL) {
        tell("event", load.arrived_us);
    }
    (void)printf("\n");
    return 0;
}
