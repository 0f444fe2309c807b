/* SPDX-License-Identifier: Apache-2.0 */
/* Code common to stock boards, in single_core.c, given a clock by the board. */
#ifndef SINGLE_CORE_H
#define SINGLE_CORE_H

#include <stdint.h>

/* Provided by the board: a 32-bit counter, which counts up and wraps. A tick is a core cycle unless [timer] in the
 * board file has hz. */
uint32_t clock_now(void);

/* Cycle counter of the core (Armv7-M, C1.8), for boards that use it as their timer. */
struct cycle_counter {
    volatile uint32_t control;
    volatile uint32_t count;
};

static inline void cycle_counter_start(struct cycle_counter *counter)
{
    volatile uint32_t *const debug_control = (volatile uint32_t *)0xE000EDFCU; /* DEMCR; the counter needs bit 24 */
    *debug_control |= 1U << 24;
    counter->control |= 1;
}

/* Provided by boards with several cores: the number of the calling core. */
uint32_t core_number(void);

/* Start to count cycles. Call from hal_init(), once the clock runs. */
void clock_begin(void);

#endif
