/* From reset to main(): the vector table, the FPU, the memory that C expects, and what happens on a fault. */
#include <stdint.h>

#include "fault.h"

/* Laid out by board/link.ld. */
extern uint32_t __data_start[], __data_end[], __bss_start[], __bss_end[], __stack_bottom[], __stack_top[];
extern const uint32_t __data_load[];

extern int main(void);
void reset_handler(void);

/* What untouched stack holds: the deepest use is at the first word that differs. */
enum { STACK_PAINT = 0x5AFEC0DE };

/* Armv7-M, Coprocessor Access Control Register. A core without FPU needs none of it. */
#define CPACR (*(volatile uint32_t *)0xE000ED88U)
#define CPACR_FULL_FPU (0xFU << 20)

static void enable_fpu(void)
{
#ifdef __ARM_FP
    CPACR |= CPACR_FULL_FPU;
    __asm volatile("dsb\n\tisb" ::: "memory");
#endif
}

/* `<`, not `!=`: sections can be empty, and a compiler takes two symbols for two different addresses. */
static void prepare_memory(void)
{
    const uint32_t *load = __data_load;
    for (uint32_t *word = __data_start; word < __data_end; word++) {
        *word = *load++;
    }
    for (uint32_t *word = __bss_start; word < __bss_end; word++) {
        *word = 0;
    }
}

static void paint_stack(void)
{
    uint32_t *used;
    __asm volatile("mov %0, sp" : "=r"(used));
    for (volatile uint32_t *word = __stack_bottom; word < used; word++) {
        *word = STACK_PAINT;
    }
}

void reset_handler(void)
{
    enable_fpu();
    paint_stack();
    prepare_memory();
    main();
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
