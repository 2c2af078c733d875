/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file release.h
 * @brief Which release's schemas a process writes: the setting SCHEMA_WRITE.
 *
 * During a rolling update pods of the former release read what new pods write, and an unknown
 * writer's schema is a dead letter. So a release writes by the former one's schemas ("previous")
 * until every pod is new and the setting is raised to "current". Reading needs no setting: every
 * kept version is read.
 *
 * Ownership and threads: as codec.h. Failure: PAY_REJECT names what is not known.
 */
#ifndef PAY_CONTRACTS_RELEASE_H
#define PAY_CONTRACTS_RELEASE_H

#include "common/contracts/codec.h"

/**
 * @brief Write every record as @p release did from now on.
 * @param release "previous" (the last line of schemas/avro/releases.txt), "current" (this
 * program's own schemas), or a name in that file.
 * @return PAY_REJECT when there is no such release.
 */
PAY_MUST_CHECK enum pay_status pay_codec_write_release(struct pay_codec *codec, const char *release,
                                                       struct pay_err *err);
/** @brief pay_codec_new() and pay_codec_write_release() in one: what a service opens. */
PAY_MUST_CHECK enum pay_status
pay_codec_new_writing(const char *release, struct pay_codec **ret_codec, struct pay_err *err);
/** @brief The same check without a codec, for --check-config. */
PAY_MUST_CHECK enum pay_status pay_release_check(const char *release, struct pay_err *err);

#endif /* PAY_CONTRACTS_RELEASE_H */
