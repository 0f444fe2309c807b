/* SPDX-License-Identifier: Apache-2.0 */
/* Interface to the core, here of RISC-V. The folder of each core family has a core.h. */
#ifndef CORE_H
#define CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"
#include "csr.h"

/* True if QEMU emulates the core. */
bool core_is_qemu(void);

/* Restart as from reset. The board's HAL implements this, since RISC-V does not define a restart. */
_Noreturn void core_restart(void);

/* Handler of every exception: report the failed instruction and the cause to the host, then stop. */
void fault_handler(void);

enum { MSTATUS_VECTORS_ON = 1 << 9, MSTATUS_FPU_ON = 1 << 13, MIE_EXTERNAL = 1 << 11 };

/* First code after reset: set the trap handler; enable the event interrupt, the FPU and vectors, where present. */
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
