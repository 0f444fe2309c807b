/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: what a fault leaves to be told. */
#include "core.h"
#include "csr.h"
#include "hal.h"
#include "rpc.h"

/* A fault's code is mcause with this bit. Codes without it are of Arm's status register (cortex_m/fault.c). */
#define NUMBERED 0x80000000U

/* The lowest bits of its address choose how traps are taken. */
__attribute__((aligned(4))) void fault_handler(void)
{
    rpc_report_fault(NUMBERED | READ_CSR("mcause"), READ_CSR("mepc"), READ_CSR("mtval"));
    for (;;) {
        hal_wait();
    }
}
