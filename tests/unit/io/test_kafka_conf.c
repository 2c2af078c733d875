/* SPDX-License-Identifier: Apache-2.0 */
/* Which properties pass, which are ours, and that no value of one ever reaches an error text. */
#include "common/io/kafka/kafka_conf.h"
#include "common/io/kafka/kafka_headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

struct row {
    const char *properties;
    enum pay_status status;
    const char *text; /* Part of the error's text. */
};

static const struct row rows[] = {
    {NULL, PAY_OK, NULL},
    {"", PAY_OK, NULL},
    {"# a comment\n\n  security.protocol = SASL_SSL \r\nsasl.mechanisms=PLAIN\nsasl.username=u\n"
     "sasl.password=a=b=c",
     PAY_OK, NULL},
    {"compression.type=lz4\nclient.rack=r1", PAY_OK, NULL},
    {"partition.assignment.strategy=roundrobin", PAY_OK, NULL},
    {"socket.nagle.disable=false", PAY_OK, NULL},
    {"no equals sign", PAY_FATAL, "line 1"},
    {"\n\nnot.a.property=sesame", PAY_FATAL, "not.a.property: no such property"},
    {"security.protocol=sesame", PAY_FATAL, "security.protocol: value is not valid"},
    /* What the guarantees rest on. */
    {"acks=1", PAY_FATAL, "acks is fixed"},
    {"request.required.acks=1", PAY_FATAL, "fixed"},
    {"enable.idempotence=false", PAY_FATAL, "fixed"},
    {"max.in.flight=5", PAY_FATAL, "fixed"},
    {"max.in.flight.requests.per.connection=5", PAY_FATAL, "fixed"},
    {"transactional.id=x", PAY_FATAL, "fixed"},
    {"partitioner=random", PAY_FATAL, "fixed"},
    {"message.timeout.ms=1", PAY_FATAL, "fixed"},
    {"delivery.timeout.ms=1", PAY_FATAL, "fixed"},
    {"group.id=x", PAY_FATAL, "fixed"},
    {"group.instance.id=x", PAY_FATAL, "fixed"},
    {"enable.auto.commit=true", PAY_FATAL, "fixed"},
    {"auto.commit.enable=true", PAY_FATAL, "fixed"},
    {"enable.auto.offset.store=true", PAY_FATAL, "fixed"},
    {"auto.offset.reset=latest", PAY_FATAL, "fixed"},
    {"queue.buffering.max.messages=1", PAY_FATAL, "fixed"},
    {"allow.auto.create.topics=true", PAY_FATAL, "fixed"},
};

static void each_property_is_judged(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        const struct pay_kafka_conf conf = {
            .bootstrap = "127.0.0.1:1", .client_id = "test", .properties = row->properties};
        struct pay_err err = {0};

        print_message("%s\n", row->properties != NULL ? row->properties : "(none)");
        assert_int_equal(pay_kafka_conf_check(&conf, &err), row->status);
        assert_true(row->text == NULL || strstr(err.text, row->text) != NULL);
        assert_null(strstr(err.text, "sesame"));
    }
}

static void a_cluster_must_be_named(void **state)
{
    struct pay_kafka_conf conf = {0};
    struct pay_err err = {0};

    (void)state;
    assert_int_equal(pay_kafka_conf_check(&conf, &err), PAY_FATAL);
    assert_non_null(strstr(err.text, "bootstrap.servers"));
    conf.properties = "bootstrap.servers=h:9092";
    assert_int_equal(pay_kafka_conf_check(&conf, &err), PAY_OK);
}

/* Versions below 2.6.1 send the nonce twice, which looks like a wrong password. */
static void scram_is_refused_where_it_cannot_log_in(void **state)
{
    const struct pay_kafka_conf conf = {.bootstrap = "h:1",
                                        .properties = "sasl.mechanism=SCRAM-SHA-512"};
    struct pay_err err = {0};
    int major = 0;
    int minor = 0;
    int patch = 0;

    (void)state;
    assert_int_equal(sscanf(pay_kafka_library_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    bool works = major * 10000 + minor * 100 + patch >= 20601;
    assert_int_equal(pay_kafka_conf_check(&conf, &err), works ? PAY_OK : PAY_FATAL);
    assert_true(works || strstr(err.text, "2.6.1") != NULL);
}

static void a_file_is_read_after_the_text(void **state)
{
    char path[] = "/tmp/pay-io-kafka-XXXXXX";
    struct pay_err err = {0};
    struct pay_kafka_conf conf = {.bootstrap = "h:1", .properties_file = path};
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(pay_kafka_conf_check(&conf, &err), PAY_OK); /* Empty. */
    assert_int_equal(write(fd, "client.rack=a\nacks=0", 20), 20);
    assert_int_equal(pay_kafka_conf_check(&conf, &err), PAY_FATAL);
    assert_non_null(strstr(err.text, "acks is fixed"));
    close(fd);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(pay_kafka_conf_check(&conf, &err), PAY_FATAL); /* Absent. */
}

static void headers_are_a_list_with_an_end(void **state)
{
    struct pay_kafka_headers headers = {0};

    (void)state;
    assert_true(pay_kafka_headers_add_str(&headers, "a", PAY_STR("1")));
    assert_true(pay_kafka_headers_add_str(&headers, "a", PAY_STR("2")));
    assert_true(pay_kafka_headers_add(&headers, "null", (struct pay_bytes){0}));
    assert_true(pay_str_eq_c(pay_kafka_headers_get_str(&headers, "a"), "1"));
    assert_null(pay_kafka_headers_get(&headers, "null").ptr);
    assert_null(pay_kafka_headers_get(&headers, "absent").ptr);
    while (headers.count < PAY_KAFKA_HEADERS_MAX) {
        assert_true(pay_kafka_headers_add_str(&headers, "x", PAY_STR("")));
    }
    assert_false(pay_kafka_headers_add_str(&headers, "x", PAY_STR("")));
    assert_int_equal(headers.count, PAY_KAFKA_HEADERS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_property_is_judged),
        cmocka_unit_test(a_cluster_must_be_named),
        cmocka_unit_test(scram_is_refused_where_it_cannot_log_in),
        cmocka_unit_test(a_file_is_read_after_the_text),
        cmocka_unit_test(headers_are_a_list_with_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
