/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"
const struct pay_ctl_command pay_ctl_explain = {.name = "explain", .what = "x", .options_size = 1};
