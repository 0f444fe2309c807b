/* SPDX-License-Identifier: Apache-2.0 */
/* The board's security counter: the least that an image's must be. It only ever rises (docs/flash.md, section 3). */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* 0 before it was ever raised. */
uint32_t counter_read(void);

/* Whether it is that high, or can still be raised. */
bool counter_can_reach(uint32_t value);

/* Raise it. Nothing if it is that high already. False if it cannot be raised any more. */
bool counter_raise(uint32_t value);

#endif
