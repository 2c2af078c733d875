/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/payfactctl/ctl.h"

#include "common/base/banned.h"

int main(int argc, char **argv)
{
    return pay_ctl_main(argc, argv);
}
