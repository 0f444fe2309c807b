/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V (Privileged Architecture 1.12, machine mode): the first instructions. */
#include "core.h"

#include "csr.h"

void vectors(void);

enum { QEMU_VERSION_SHIFT = 16 };

/* The core begins here, at the first address of the code. */
__attribute__((naked, section(".vectors"), used)) void vectors(void)
{
    __asm volatile("la sp, __stack_top\n\t"
                   "j reset_handler");
}

/* QEMU gives its version for the number of the architecture, and names no vendor. */
bool core_is_qemu(void)
{
    return READ_CSR("mvendorid") == 0 && READ_CSR("marchid") >> QEMU_VERSION_SHIFT != 0;
}
