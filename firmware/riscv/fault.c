/* SPDX-License-Identifier: Apache-2.0 */
/* RISC-V: the report of a fault. */
#include "core.h"
#include "csr.h"
#include "hal.h"
#include "rpc.h"

/* Bit that marks a fault code as mcause. Codes without the bit are Arm's status register (cortex_m/fault.c). */
#define NUMBERED 0x80000000U

/* Aligned: the lowest bits of the handler's address select the trap mode. */
__attribute__((aligned(4))) void fault_handler(void)
{
    rpc_report_fault(NUMBERED | READ_CSR("mcause"), READ_CSR("mepc"), READ_CSR("mtval"));
    for (;;) {
        hal_wait();
    }
}
