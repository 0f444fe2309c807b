/* SPDX-License-Identifier: Apache-2.0 */
/* Arm's M profile: vector table, restart. */
#include "core.h"

/* Laid out by board/link.ld. */
extern uint32_t __stack_top[];

void reset_handler(void);

/* Application Interrupt and Reset Control Register. */
#define AIRCR (*(volatile uint32_t *)0xE000ED0CU)
enum { AIRCR_RESET = 0x05FA0004 };

/* Debug Exception and Monitor Control Register, and the control register of the data watchpoint and trace unit. */
#define DEMCR (*(volatile uint32_t *)0xE000EDFC)
#define DWT_CTRL (*(volatile uint32_t *)0xE0001000)
enum { TRACE_ENABLE = 1 << 24, COMPARATORS_SHIFT = 28 };

/* QEMU has no watchpoint unit: the unit's registers read as 0. On silicon the unit has comparators. */
bool core_is_qemu(void)
{
    DEMCR |= TRACE_ENABLE;
    return DWT_CTRL >> COMPARATORS_SHIFT == 0;
}

_Noreturn void core_restart(void)
{
    AIRCR = AIRCR_RESET;
    for (;;) {
    }
}

/* No interrupt is used: every exception is a fault. */
struct vectors {
    uint32_t *initial_stack;
    void (*reset)(void);
    void (*exceptions[14])(void);
};

_Static_assert(sizeof(struct vectors) == 64, "sixteen words");

extern const struct vectors vectors;

__attribute__((section(".vectors"), used)) const struct vectors vectors = {
    __stack_top,
    reset_handler,
    {
        fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
        fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler, fault_handler,
    },
};
