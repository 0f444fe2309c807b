/* SPDX-License-Identifier: Apache-2.0 */
/* Control and status registers of RISC-V. */
#ifndef CSR_H
#define CSR_H

#include <stdint.h>

/* Enable the registers' extension around an instruction, for compilers that target cores without the extension. */
#define CSR(instruction) ".option push\n\t.option arch, +zicsr\n\t" instruction "\n\t.option pop"
#define READ_CSR(name)                                                     \
    __extension__({                                                        \
        uint32_t value_;                                                   \
        __asm volatile(CSR("csrr %0, " name) : "=r"(value_)::"memory"); \
        value_;                                                            \
    })

#endif
