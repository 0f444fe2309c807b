/* SPDX-License-Identifier: Apache-2.0 */
/* Arm's M profile: the vector table, a restart. */
#include "core.h"

/* Laid out by board/link.ld. */
extern uint32_t __stack_top[];

void reset_handler(void);

/* Application Interrupt and Reset Control Register. */
#define AIRCR (*(volatile uint32_t *)0xE000ED0CU)
enum { AIRCR_RESET = 0x05FA0004 };

/* The debug exception and monitor control register, and that of the data watchpoint and trace unit. */
#define DEMCR (*(volatile uint32_t *)0xE000EDFC)
#define DWT_CTRL (*(volatile uint32_t *)0xE0001000)
enum { TRACE_ENABLE = 1 << 24, COMPARATORS_SHIFT = 28 };

/* QEMU has no watchpoint unit: its registers read as 0. That of silicon has comparators. */
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

/* No interrupt is used, so every exception is a fault. */
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
