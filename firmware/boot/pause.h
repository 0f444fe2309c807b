/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAUSE_H
#define PAUSE_H

#include <stdint.h>

#include "hal.h"

/* Wait for `cycles` cycles. */
static inline void pause_cycles(uint64_t cycles)
{
    struct hal_counters start, now;
    hal_count(&start);
    do {
        hal_count(&now);
    } while (now.cycles - start.cycles < cycles);
}

#endif
