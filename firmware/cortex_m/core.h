/* SPDX-License-Identifier: Apache-2.0 */
/* Interface to the core, here of Arm's M profile. The folder of each core family has a core.h. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

/* Coprocessor Access Control Register. */
#define CPACR (*(volatile uint32_t *)0xE000ED88U)
#define CPACR_FULL_FPU (0xFU << 20)

/* True if QEMU emulates the core. */
bool core_is_qemu(void);

/* Restart as from reset. */
_Noreturn void core_restart(void);

/* Handler of every exception: report the failed instruction and the cause to the host, then stop. */
void fault_handler(void);

/* First code after reset: enable the FPU. A core without FPU needs nothing. */
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
