/* Reset: straight into main(), then sleep. The tests' programs have no initialised data to move. */
int main(void);
void reset_handler(void);

void reset_handler(void)
{
    main();
    for (;;) {
        __asm volatile("wfe");
    }
}

__attribute__((section(".vectors"), used)) static const void *const vectors[2] = {(void *)0x20000, (void *)reset_handler};
