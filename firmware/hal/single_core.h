/* SPDX-License-Identifier: Apache-2.0 */
/* What the boards with one core have alike: single_core.c does it, given a clock. */
#ifndef SINGLE_CORE_H
#define SINGLE_CORE_H

#include <stdint.h>

/* The board's own: a 32-bit counter, which counts up and turns. Its ticks are cycles of the core, if [timer] in the board
 * file has no hz. */
uint32_t clock_now(void);

/* The core's own counter of cycles (Armv7-M, C1.8), for boards that have it as their timer. */
struct cycle_counter {
    volatile uint32_t control;
    volatile uint32_t count;
};

static inline void cycle_counter_start(struct cycle_counter *counter)
{
    volatile uint32_t *const debug_control = (volatile uint32_t *)0xE000EDFCU; /* DEMCR, of which it needs bit 24 */
    *debug_control |= 1U << 24;
    counter->control |= 1;
}

/* The board's own where it has several cores: the one that asks. */
uint32_t core_number(void);

/* For hal_init(), once the counter runs: cycles count from here. */
void clock_begin(void);

#endif
