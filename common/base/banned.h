/* SPDX-License-Identifier: Apache-2.0 */
/** @file banned.h @brief Included last by every .c file of common/ and services/: calls nobody may
 * make. */
#ifndef PAY_BASE_BANNED_H
#define PAY_BASE_BANNED_H

#include "common/base/attr.h" /* Alone this would be an empty translation unit. */

#pragma GCC poison strcpy strcat sprintf vsprintf gets strtok strncpy strncat atoi atol atoll
/* A macro of <stdlib.h> here; a poisoned name must not be one. */
#undef alloca
#pragma GCC poison alloca setenv putenv rand srand gmtime localtime ctime asctime

#endif /* PAY_BASE_BANNED_H */
