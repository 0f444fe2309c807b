/* SPDX-License-Identifier: Apache-2.0 */
/* What orders memory and waits for others on this core, here one of RISC-V. Each folder of a core's family has this
 * header; the drivers of accelerators need no other of it. */
#ifndef CORE_EVENTS_H
#define CORE_EVENTS_H

#include <stdint.h>

#include "board.h"

/* What was stored is in memory before anything that follows. */
static inline void core_order_memory(void)
{
    __asm volatile("fence iorw, iorw" ::: "memory");
}

/* Nothing is to be done here at the moment: this core has no word for it. */
static inline void core_yield(void) {}

/* Sleep until an event has come since the last time. It pends the external interrupt, which ends WFI if mie enables it
 * and is never taken, until the board's register of events is written. A board without one is asked again and again. */
static inline void core_wait_for_event(void)
{
#ifdef BOARD_EVENTS_BASE
    __asm volatile("wfi" ::: "memory");
    *(volatile uint32_t *)BOARD_EVENTS_BASE = 0;
#endif
}

#endif
