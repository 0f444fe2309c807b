/* SPDX-License-Identifier: Apache-2.0 */
/* Arm's M profile: the report of a fault. */
#include "core.h"
#include "hal.h"
#include "rpc.h"

/* System Control Block. Armv6-M lacks these registers: they read as 0. */
#define CFSR (*(volatile uint32_t *)0xE000ED28U)
#define MMFAR (*(volatile uint32_t *)0xE000ED34U)
#define BFAR (*(volatile uint32_t *)0xE000ED38U)
#define CFSR_MMFAR_VALID (1U << 7)
#define CFSR_BFAR_VALID (1U << 15)

/* The eight words that the core pushes on the stack at exception entry. */
struct exception_frame {
    uint32_t r0, r1, r2, r3, r12, lr, pc, psr;
};

void fault_stop(const struct exception_frame *frame);

static uint32_t fault_address(uint32_t status)
{
    if ((status & CFSR_BFAR_VALID) != 0) {
        return BFAR;
    }
    return (status & CFSR_MMFAR_VALID) != 0 ? MMFAR : 0;
}

__attribute__((used)) void fault_stop(const struct exception_frame *frame)
{
    const uint32_t status = CFSR;
    rpc_report_fault(status, frame->pc, fault_address(status));
    for (;;) {
        hal_wait();
    }
}

__attribute__((naked)) void fault_handler(void)
{
    __asm volatile("mrs r0, msp\n\t"
                   "bl fault_stop");
}
