/* SPDX-License-Identifier: Apache-2.0 */
/* Memory order and events of the core, here of Arm's M profile. The folder of each core family has a core_events.h, the
 * only header of the core for drivers of accelerators. */
#ifndef CORE_EVENTS_H
#define CORE_EVENTS_H

/* Make earlier stores visible in memory before any later access. */
static inline void core_order_memory(void)
{
    __asm volatile("dsb" ::: "memory");
}

/* Hint that this core has nothing to do: an emulator that runs one core at a time switches to another. */
static inline void core_yield(void)
{
    __asm volatile("yield");
}

/* Sleep until an event. Return at once if an event has come since the last call. */
static inline void core_wait_for_event(void)
{
    __asm volatile("wfe" ::: "memory");
}

#endif
