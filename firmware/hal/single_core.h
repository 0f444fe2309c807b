/* What the boards with one core have alike: single_core.c does it, given a clock. */
#ifndef SINGLE_CORE_H
#define SINGLE_CORE_H

#include <stdint.h>

/* The board's own: a 32-bit counter of the core's cycles, which counts up and turns. */
uint32_t clock_now(void);

/* For hal_init(), once the counter runs: cycles count from here. */
void clock_begin(void);

#endif
