/* SPDX-License-Identifier: Apache-2.0 */
#include "common/io/kafka/kafka_headers.h"

#include <string.h>

#include "common/base/banned.h"

bool pay_kafka_headers_add(struct pay_kafka_headers *headers, const char *name,
                           struct pay_bytes value)
{
    if (headers->count == PAY_KAFKA_HEADERS_MAX) {
        return false;
    }
    headers->items[headers->count++] = (struct pay_kafka_header){name, value};
    return true;
}

bool pay_kafka_headers_add_str(struct pay_kafka_headers *headers, const char *name,
                               struct pay_str value)
{
    return pay_kafka_headers_add(headers, name,
                                 (struct pay_bytes){(const uint8_t *)value.ptr, value.len});
}

struct pay_bytes pay_kafka_headers_get(const struct pay_kafka_headers *headers, const char *name)
{
    for (size_t i = 0; i < headers->count; i++) {
        if (strcmp(headers->items[i].name, name) == 0) {
            return headers->items[i].value;
        }
    }
    return (struct pay_bytes){0};
}

struct pay_str pay_kafka_headers_get_str(const struct pay_kafka_headers *headers, const char *name)
{
    struct pay_bytes value = pay_kafka_headers_get(headers, name);

    return (struct pay_str){(const char *)value.ptr, value.len};
}
