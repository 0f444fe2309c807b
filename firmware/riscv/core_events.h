/* SPDX-License-Identifier: Apache-2.0 */
/* Memory order and events of the core, here of RISC-V. The folder of each core family has a core_events.h, the only
 * header of the core for drivers of accelerators. */
#ifndef CORE_EVENTS_H
#define CORE_EVENTS_H

#include <stdint.h>

#include "board.h"

/* Make earlier stores visible in memory before any later access. */
static inline void core_order_memory(void)
{
    __asm volatile("fence iorw, iorw" ::: "memory");
}

/* Hint that this core has nothing to do. This core has no instruction for the hint. */
static inline void core_yield(void) {}

/* Sleep until an event. Return at once if an event has come since the last call. An event pends the external interrupt
 * until the board's event register is written. The interrupt ends WFI if mie enables it, and is never taken. On a board
 * without an event register the call returns at once: the caller polls. */
static inline void core_wait_for_event(void)
{
#ifdef BOARD_EVENTS_BASE
    __asm volatile("wfi" ::: "memory");
    *(volatile uint32_t *)BOARD_EVENTS_BASE = 0;
#endif
}

#endif
