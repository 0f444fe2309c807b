/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this PE's code, constants and own data are still what was loaded. In builds that test themselves. */
#ifndef SELF_TEST_H
#define SELF_TEST_H

#include <stdint.h>

/* What a frame fails with: the program is wrong, or what follows it in rpc_loaded. */
enum { SELF_TEST_WRONG = -16 };

/* Before the first frame: all of it. 0, or what is wrong. */
int32_t self_test_all(void);

/* Between two frames: the next few bytes, round and round. 0, or what is wrong. */
int32_t self_test_some(void);

#endif
