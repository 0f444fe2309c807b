/* SPDX-License-Identifier: Apache-2.0 */
/* What the firmware asks of its core, here one of Arm's M profile. Each folder of a core's family has this header. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

/* Coprocessor Access Control Register. */
#define CPACR (*(volatile uint32_t *)0xE000ED88U)
#define CPACR_FULL_FPU (0xFU << 20)

/* Whether QEMU pretends to be this core. */
bool core_is_qemu(void);

/* Start again, as from reset. */
_Noreturn void core_restart(void);

/* What every exception leads to: tell the host which instruction failed and why, then stop. */
void fault_handler(void);

/* The first thing after reset: what code may need before it runs. A core without FPU needs nothing. */
static inline void core_begin(void)
{
#ifdef __ARM_FP
    CPACR |= CPACR_FULL_FPU;
    __asm volatile("dsb\n\tisb" ::: "memory");
#endif
}

static inline uint32_t *core_stack_pointer(void)
{
    uint32_t *pointer;
    __asm volatile("mov %0, sp" : "=r"(pointer));
    return pointer;
}

#endif
