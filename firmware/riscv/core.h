/* SPDX-License-Identifier: Apache-2.0 */
/* What the firmware asks of its core, here one of RISC-V. Each folder of a core's family has this header. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "csr.h"

/* Whether QEMU pretends to be this core. */
bool core_is_qemu(void);

/* Start again, as from reset. RISC-V has no way of its own: the board's C has it. */
_Noreturn void core_restart(void);

/* What every exception leads to: tell the host which instruction failed and why, then stop. */
void fault_handler(void);

enum { MSTATUS_VECTORS_ON = 1 << 9, MSTATUS_FPU_ON = 1 << 13, MIE_EXTERNAL = 1 << 11 };

/* The first thing after reset: what code may need before it runs. */
static inline void core_begin(void)
{
    __asm volatile(CSR("csrw mtvec, %0")::"r"((uint32_t)(uintptr_t)fault_handler));
#ifdef BOARD_EVENTS_BASE
    __asm volatile(CSR("csrw mie, %0")::"r"(MIE_EXTERNAL));
#endif
#ifdef __riscv_flen
    __asm volatile(CSR("csrs mstatus, %0")::"r"(MSTATUS_FPU_ON));
#endif
#ifdef CORE_VECTORS
    __asm volatile(CSR("csrs mstatus, %0")::"r"(MSTATUS_VECTORS_ON));
#endif
}

static inline uint32_t *core_stack_pointer(void)
{
    uint32_t *pointer;
    __asm volatile("mv %0, sp" : "=r"(pointer));
    return pointer;
}

#endif
