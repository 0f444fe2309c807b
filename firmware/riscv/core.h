/* What the firmware asks of its core, here one of RISC-V. Each folder of a core's family has this header. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "csr.h"

/* Whether QEMU pretends to be this core. */
bool core_is_qemu(void);

/* Start again, as from reset. RISC-V has no way of its own: the board's C has it. */
_Noreturn void core_restart(void);

/* What every exception leads to: tell the host which instruction failed and why, then stop. */
void fault_handler(void);

enum { MSTATUS_FPU_ON = 1 << 13 };

/* The first thing after reset: what code may need before it runs. */
static inline void core_begin(void)
{
    __asm volatile(CSR("csrw mtvec, %0")::"r"((uint32_t)(uintptr_t)fault_handler));
#ifdef __riscv_flen
    __asm volatile(CSR("csrs mstatus, %0")::"r"(MSTATUS_FPU_ON));
#endif
}

static inline uint32_t *core_stack_pointer(void)
{
    uint32_t *pointer;
    __asm volatile("mv %0, sp" : "=r"(pointer));
    return pointer;
}

/* What was stored is in memory before anything that follows. */
static inline void core_order_memory(void)
{
    __asm volatile("fence iorw, iorw" ::: "memory");
}

/* Sleep until an event has come since the last time. */
static inline void core_wait_for_event(void)
{
    __asm volatile("wfi" ::: "memory");
}

#endif
