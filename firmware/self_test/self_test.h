/* SPDX-License-Identifier: Apache-2.0 */
/* Self-test of this PE's code, constants and own data against their digests. Only in builds that test themselves. */
#ifndef SELF_TEST_H
#define SELF_TEST_H

#include <stdint.h>

/* Error code of a frame if entry 0 of rpc_loaded, the program, is wrong; entry n: SELF_TEST_WRONG - n. */
enum { SELF_TEST_WRONG = -16 };

/* Test all of rpc_loaded, before the first frame. Returns 0 or the error code. */
int32_t self_test_all(void);

/* Test the next few bytes, round and round, between two frames. Returns 0 or the error code. */
int32_t self_test_some(void);

#endif
