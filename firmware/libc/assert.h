/* SPDX-License-Identifier: Apache-2.0 */
/* C11's spelling of compile-time checks. There is no run-time assert: the firmware returns error codes. */
#ifndef ASSERT_H
#define ASSERT_H

#define static_assert _Static_assert

#endif
