/* SPDX-License-Identifier: Apache-2.0 */
/* Security counter of the board: the lower bound for an image's counter. Only ever rises (docs/protocol.md, section 7). */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* 0 before the first raise. */
uint32_t counter_read(void);

/* True if the counter is at least `value`, or can still be raised. */
bool counter_can_reach(uint32_t value);

/* Raise the counter to `value`, unless it is as high already. False if the counter cannot be raised any more. */
bool counter_raise(uint32_t value);

#endif
