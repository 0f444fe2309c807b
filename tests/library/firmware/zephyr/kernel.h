/* Zephyr's names for the kernel in rtos.h, as far as the example in docs/plug-in.md has them. */
#ifndef ZEPHYR_KERNEL_H
#define ZEPHYR_KERNEL_H

#include "rtos.h"

#define K_FOREVER 0
#define K_SEM_DEFINE(name, first, most) struct semaphore name = {.given = (first) != 0}

static inline void k_sem_take(struct semaphore *semaphore, int timeout)
{
    (void)timeout;
    semaphore_take(semaphore);
}

static inline void k_sem_give(struct semaphore *semaphore)
{
    semaphore_give(semaphore);
}

#endif
