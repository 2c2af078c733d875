/* SPDX-License-Identifier: Apache-2.0 */
/* Goal: keys land on the partition that Kafka's Java client gives them. Vectors: UtilsTest.java. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "common/base/hash.h"

static const struct {
    const char *key;
    int32_t murmur2; /* As Java prints it. */
} rows[] = {
    {"21", -973932308},
    {"foobar", -790332482},
    {"a-little-bit-long-string", -985981536},
    {"a-little-bit-longer-string", -1486304829},
    {"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971},
    {"abc", 479470107},
};

static struct pay_bytes bytes_of(const char *text)
{
    const struct pay_str str = pay_str_of(text);
    return (struct pay_bytes){(const uint8_t *)str.ptr, str.len};
}

static void every_java_vector(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t positive = (uint32_t)rows[i].murmur2 & UINT32_C(0x7fffffff);
        assert_int_equal(pay_hash_murmur2_positive(bytes_of(rows[i].key)), positive);
        for (uint32_t partitions = 1; partitions < 100; partitions++) {
            assert_int_equal(pay_hash_partition(pay_str_of(rows[i].key), partitions),
                             positive % partitions);
        }
    }
}

static void bytes_above_127_are_not_negative(void **state)
{
    (void)state;
    static const uint8_t high[] = {0xff, 0xfe, 0x80, 0x81, 0xc3, 0xa9, 0xf0};
    /* Prefixes of 0..7 bytes, so that each length of the tail is seen. */
    static const uint32_t wanted[] = {275646681,  1836015963, 1717632651, 1986757251,
                                      1055649942, 114966130,  1689975435, 2000831060};

    for (size_t len = 0; len < sizeof wanted / sizeof wanted[0]; len++) {
        assert_int_equal(pay_hash_murmur2_positive((struct pay_bytes){high, len}), wanted[len]);
    }
}

static void fnv_vectors(void **state)
{
    (void)state;
    assert_true(pay_hash_fnv1a(PAY_FNV_START, bytes_of("")) == PAY_FNV_START);
    assert_true(pay_hash_fnv1a(PAY_FNV_START, bytes_of("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(pay_hash_fnv1a(PAY_FNV_START, bytes_of("foobar")) == UINT64_C(0x85944171f73967e8));
}

static void fnv_chains(void **state)
{
    (void)state;
    const uint64_t foo = pay_hash_fnv1a(PAY_FNV_START, bytes_of("foo"));
    assert_true(pay_hash_fnv1a(foo, bytes_of("bar")) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_java_vector),
        cmocka_unit_test(bytes_above_127_are_not_negative),
        cmocka_unit_test(fnv_vectors),
        cmocka_unit_test(fnv_chains),
    };
    return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
