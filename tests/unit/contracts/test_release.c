/* SPDX-License-Identifier: Apache-2.0 */
/* Which schemas a process writes by during a rolling update. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/contracts/release.h"
#include "common/contracts/released.h"
#include "common/contracts/releases.h"

static int make(void **state)
{
    struct pay_err err;

    return pay_codec_new((struct pay_codec **)state, &err) == PAY_OK ? 0 : -1;
}

static int drop(void **state)
{
    (void)pay_codec_free(*state); /* Always NULL. */
    return 0;
}

/* @return the version number of history that the codec writes, by its fingerprint; 0: current. */
static int written(const struct pay_codec *codec, enum pay_record record)
{
    struct pay_released released[PAY_RELEASED_MAX];
    const size_t count = pay_released(record, released);

    for (size_t i = 0; i < count; i++) {
        if (released[i].fingerprint == pay_codec_fingerprint(codec, record)) {
            return released[i].version;
        }
    }
    fail_msg("%s is written by no known schema", pay_record_name(record));
    return -1;
}

static void every_release_can_be_written(void **state)
{
    struct pay_err err;

    assert_true(pay_release_count > 0);
    for (size_t i = 0; i < pay_release_count; i++) {
        assert_int_equal(pay_codec_write_release(*state, pay_releases[i].name, &err), PAY_OK);
        for (int record = 0; record < PAY_RECORD_COUNT; record++) {
            (void)written(*state, (enum pay_record)record); /* Fails where it is none. */
        }
    }
}

static void previous_is_the_last_line_and_current_our_own(void **state)
{
    struct pay_err err;

    assert_int_equal(pay_codec_write_release(*state, "0.1.0-alpha.1", &err), PAY_OK);
    assert_int_equal(written(*state, PAY_RECORD_PAYMENT_INPUT), 1);
    assert_int_equal(pay_codec_write_release(*state, "current", &err), PAY_OK);
    for (int record = 0; record < PAY_RECORD_COUNT; record++) {
        struct pay_released released[PAY_RELEASED_MAX];
        const size_t count = pay_released((enum pay_record)record, released);
        assert_true(released[count - 1].fingerprint ==
                    pay_codec_fingerprint(*state, (enum pay_record)record));
    }
    const uint64_t own = pay_codec_fingerprint(*state, PAY_RECORD_PAYMENT_INPUT);
    assert_int_equal(pay_codec_write_release(*state, "previous", &err), PAY_OK);
    const uint64_t former = pay_codec_fingerprint(*state, PAY_RECORD_PAYMENT_INPUT);
    assert_true(former != own);
    assert_int_equal(
        pay_codec_write_release(*state, pay_releases[pay_release_count - 1].name, &err), PAY_OK);
    assert_true(former == pay_codec_fingerprint(*state, PAY_RECORD_PAYMENT_INPUT));
}

static void an_unknown_release_is_named(void **state)
{
    static const char *const names[] = {"", "0.0.1", "Current", "0.1.0-alpha.1 "};
    struct pay_err err;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_int_equal(pay_release_check(names[i], &err), PAY_REJECT);
        assert_int_equal(pay_codec_write_release(*state, names[i], &err), PAY_REJECT);
        assert_non_null(strstr(err.text, names[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_release_can_be_written, make, drop),
        cmocka_unit_test_setup_teardown(previous_is_the_last_line_and_current_our_own, make, drop),
        cmocka_unit_test_setup_teardown(an_unknown_release_is_named, make, drop),
    };
    return cmocka_run_group_tests_name("contracts.release", tests, NULL, NULL);
}
