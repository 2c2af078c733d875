/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/property/permute.h"

static void swap(size_t order[PERMUTE_MAX], size_t a, size_t b)
{
    const size_t kept = order[a];
    order[a] = order[b];
    order[b] = kept;
}

bool permute(size_t order[PERMUTE_MAX], size_t count)
{
    if (count < 2 || count > PERMUTE_MAX) {
        return false;
    }
    size_t at = count - 1;
    size_t other = count - 1;

    while (at > 0 && order[at - 1] >= order[at]) {
        at--;
    }
    if (at == 0) {
        return false;
    }
    while (order[other] <= order[at - 1]) {
        other--;
    }
    swap(order, at - 1, other);
    for (size_t low = at, high = count - 1; low < high; low++, high--) {
        swap(order, low, high);
    }
    return true;
}
