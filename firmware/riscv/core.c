/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V (Privileged Architecture 1.12, machine mode): first instructions. */
#include "core.h"

#include "csr.h"

void vectors(void);

enum { QEMU_VERSION_SHIFT = 16 };

/* Entry of the core, at the first address of the code. */
__attribute__((naked, section(".vectors"), used)) void vectors(void)
{
    __asm volatile("la sp, __stack_top\n\t"
                   "j reset_handler");
}

/* QEMU reports its version as the architecture's number, and no vendor. */
bool core_is_qemu(void)
{
    return READ_CSR("mvendorid") == 0 && READ_CSR("marchid") >> QEMU_VERSION_SHIFT != 0;
}
