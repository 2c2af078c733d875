/* SPDX-License-Identifier: Apache-2.0 */
#include "common/core/decide.h"

#include "common/base/banned.h"

static struct pay_str or_empty(struct pay_str text)
{
    return text.ptr == NULL ? PAY_STR("") : text;
}

static bool take(char *dst, size_t size, struct pay_str text)
{
    return pay_str_copy(dst, size, or_empty(text));
}

static bool fill_controlled(struct pay_approval_request *request,
                            const struct pay_cmd_controlled *from)
{
    request->expected_version = from->expected_version;
    request->has_amount = from->has_amount;
    request->amount = from->amount;
    return take(request->aggregate_id, sizeof request->aggregate_id, from->aggregate_id) &&
           take(request->from_status, sizeof request->from_status, from->from_status) &&
           take(request->to_status, sizeof request->to_status, from->to_status) &&
           take(request->provider_reference, sizeof request->provider_reference,
                from->provider_reference) &&
           take(request->reason_code, sizeof request->reason_code, from->reason_code);
}

bool pay_request_fill(struct pay_approval_request *request, const struct pay_command *command)
{
    request->type = command->type;
    request->expected_version = -1;
    request->from_status[0] = 0;
    request->to_status[0] = 0;
    request->provider_reference[0] = 0;
    if (command->type != PAY_CMD_REQUEST_REFUND) {
        return fill_controlled(request, &command->controlled);
    }
    request->has_amount = true;
    request->amount = command->money.amount;
    return take(request->reason_code, sizeof request->reason_code, command->money.reason_code);
}
