/* A small preemptive kernel that plays an RTOS: tasks of fixed priorities, semaphores. */
#ifndef RTOS_H
#define RTOS_H

#include <stdbool.h>
#include <stdint.h>

/* One that may be given once and taken once. */
struct semaphore {
    volatile bool given;
};

/* Sleep until it is given, and take it. */
void semaphore_take(struct semaphore *semaphore);

/* Also from interrupts. */
void semaphore_give(struct semaphore *semaphore);

/* Run these tasks, the first whenever it can, the last whenever no other can; a tick gives `tick`. Never returns. */
void start_tasks(void (*const *tasks)(void), uint32_t count, struct semaphore *tick);

#endif
