/* SPDX-License-Identifier: Apache-2.0 */
/* What an accelerator's driver asks of the firmware around it.
 *
 * With -DACCELERATOR_HOOKS that firmware has these functions itself: under an RTOS accelerator_wait blocks on a semaphore
 * that the accelerator's interrupt gives; with a data cache the other two clean and invalidate it. Without, they are what
 * a core needs that has no cache and is woken by the accelerator's event. */
#ifndef ACCELERATOR_H
#define ACCELERATOR_H

#ifdef ACCELERATOR_HOOKS
#ifdef __cplusplus
extern "C" {
#endif

/* What the core has stored is in memory, for the accelerator that starts next. */
void accelerator_before(void);

/* Wait until an accelerator may have ended. The driver tests, and calls this again if it has not; an end between the
 * test and this call must end it, too. */
void accelerator_wait(void);

/* What the core loads from now on is what the accelerator that has ended left in memory. */
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
