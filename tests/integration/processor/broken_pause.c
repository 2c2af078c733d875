/* SPDX-License-Identifier: Apache-2.0 */
/* payfact-processor with one fault: the client says that it is paused, and hands records out all
 * the same. Linked in place of the real call (--wrap); everything else is the service as it ships.
 */
#include "common/io/kafka/kafka_consumer.h"

enum pay_status __wrap_pay_kafka_consumer_pause(struct pay_kafka_consumer *consumer,
                                                struct pay_err *err);

enum pay_status __wrap_pay_kafka_consumer_pause(struct pay_kafka_consumer *consumer,
                                                struct pay_err *err)
{
    (void)consumer;
    (void)err;
    return PAY_OK;
}
