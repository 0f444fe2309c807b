/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks that an accelerator's driver calls in the firmware around it.
 *
 * With -DACCELERATOR_HOOKS the firmware implements them: under an RTOS accelerator_wait blocks on a semaphore, given by
 * the accelerator's interrupt; with a data cache accelerator_before cleans and accelerator_after invalidates the cache.
 * Without the macro, the versions below serve a core without a cache, woken by the accelerator's event. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#ifdef ACCELERATOR_HOOKS
#ifdef __cplusplus
extern "C" {
#endif

/* Make the core's stores visible in memory before an accelerator starts. */
void accelerator_before(void);

/* Wait until an accelerator may have ended. The driver tests, and calls again if the accelerator is still busy. An end
 * between test and call must end the wait as well. */
void accelerator_wait(void);

/* Make results that an accelerator left in memory visible to the core's later loads. */
void accelerator_after(void);

#ifdef __cplusplus
}
#endif
#else

#include "core_events.h"

static inline void accelerator_before(void)
{
    core_order_memory();
}

static inline void accelerator_wait(void)
{
    core_wait_for_event();
}

static inline void accelerator_after(void)
{
    __asm volatile("" ::: "memory");
}
#endif

#endif
