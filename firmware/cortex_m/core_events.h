/* SPDX-License-Identifier: Apache-2.0 */
/* What orders memory and waits for others on this core, here one of Arm's M profile. Each folder of a core's family has
 * this header; the drivers of accelerators need no other of it. */
#ifndef CORE_EVENTS_H
#define CORE_EVENTS_H

/* What was stored is in memory before anything that follows. */
static inline void core_order_memory(void)
{
    __asm volatile("dsb" ::: "memory");
}

/* Nothing is to be done here at the moment: an emulator that runs one core at a time goes on with another one. */
static inline void core_yield(void)
{
    __asm volatile("yield");
}

/* Sleep until an event has come since the last time. */
static inline void core_wait_for_event(void)
{
    __asm volatile("wfe" ::: "memory");
}

#endif
