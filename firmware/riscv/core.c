/* RISC-V (Privileged Architecture 1.12, machine mode): the first instructions, traps, the FPU. */
#include "core.h"

#include "csr.h"

void vectors(void);

enum { MSTATUS_FPU_ON = 1 << 13, QEMU_VERSION_SHIFT = 16 };

/* The core begins here, at the first address of the code. */
__attribute__((naked, section(".vectors"), used)) void vectors(void)
{
    __asm volatile("la sp, __stack_top\n\t"
                   "j reset_handler");
}

void core_begin(void)
{
    __asm volatile(CSR("csrw mtvec, %0")::"r"((uint32_t)(uintptr_t)fault_handler));
#ifdef __riscv_flen
    __asm volatile(CSR("csrs mstatus, %0")::"r"(MSTATUS_FPU_ON));
#endif
}

/* QEMU gives its version for the number of the architecture, and names no vendor. */
bool core_is_qemu(void)
{
    return READ_CSR("mvendorid") == 0 && READ_CSR("marchid") >> QEMU_VERSION_SHIFT != 0;
}
