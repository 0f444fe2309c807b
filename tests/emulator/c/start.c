/* Reset: the FPU on, variables cleared, then main(), then sleep. The tests' programs have no initialised data to move. */
#include "board.h"

int main(void);
void reset_handler(void);

extern unsigned __bss_start[], __bss_end[];

#ifdef __riscv
__attribute__((naked, section(".vectors"), used)) void vectors(void);
__attribute__((naked, section(".vectors"), used)) void vectors(void)
{
    __asm volatile("li sp, 0x20000\n\t"
                   "j reset_handler");
}

/* FS of mstatus, and MEIE of mie. */
static void begin(void)
{
    __asm volatile("csrw mstatus, %0\n\tcsrw mie, %1" ::"r"(1 << 13), "r"(1 << 11));
}
#else
__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {(void *)0x20000, (void *)reset_handler};

static void begin(void)
{
    REGISTER(0xE000ED88U) = 0xFU << 20;
    __asm volatile("dsb\n\tisb" ::: "memory");
}
#endif

void reset_handler(void)
{
    begin();
    for (volatile unsigned *word = __bss_start; word < __bss_end; word++) {
        *word = 0;
    }
    main();
    for (;;) {
        wait_for_event();
    }
}
