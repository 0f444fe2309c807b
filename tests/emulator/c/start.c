/* Reset: the FPU on, variables cleared, then main(), then sleep. The tests' programs have no initialised data to move. */
int main(void);
void reset_handler(void);

extern unsigned __bss_start[], __bss_end[];

#define CPACR (*(volatile unsigned *)0xE000ED88U)

void reset_handler(void)
{
    CPACR = 0xFU << 20;
    __asm volatile("dsb\n\tisb" ::: "memory");
    for (volatile unsigned *word = __bss_start; word < __bss_end; word++) {
        *word = 0;
    }
    main();
    for (;;) {
        __asm volatile("wfe");
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {(void *)0x20000, (void *)reset_handler};
