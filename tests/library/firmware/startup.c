/* The customer's start-up: variables cleared, the FPU on, main. Handlers that a firmware has not are never called. */
#include <stddef.h>
#include <stdint.h>

int main(void);
void reset_handler(void);
__attribute__((weak)) void pend_sv_handler(void);
__attribute__((weak)) void sys_tick_handler(void);
__attribute__((weak)) void NPU_IRQHandler(void);

extern uint32_t bss_start[], bss_end[], stack_top[];

#define CPACR (*(volatile uint32_t *)0xE000ED88U)

enum { PEND_SV = 14, SYS_TICK = 15, NPU = 16 };

__attribute__((section(".vectors"), used)) static const void *const vectors[NPU + 1] = {
    [0] = stack_top,
    [1] = (const void *)reset_handler,
    [PEND_SV] = (const void *)pend_sv_handler,
    [SYS_TICK] = (const void *)sys_tick_handler,
    [NPU] = (const void *)NPU_IRQHandler,
};

void reset_handler(void)
{
    CPACR = 0xFU << 20;
    __asm volatile("dsb\n\tisb" ::: "memory");
    for (volatile uint32_t *word = bss_start; word < bss_end; word++) {
        *word = 0;
    }
    main();
    for (;;) {
        __asm volatile("wfe");
    }
}
