/* The processing elements of the pe-mesh boards: boards/pe-mesh.md, sections 2, 4 and 5. */
#include "hal.h"

#include "board.h"
#include "noc.h"

struct timer_registers {
    volatile uint32_t cycles_lo;
    volatile uint32_t cycles_hi; /* latched by reading cycles_lo; the same for the other pairs */
    volatile uint32_t instructions_lo;
    volatile uint32_t instructions_hi;
    volatile uint32_t sleep_lo;
    volatile uint32_t sleep_hi;
};

struct uart_registers {
    volatile uint32_t data;
    volatile uint32_t status;
};

enum { UART_READABLE = 1, UART_WRITABLE = 2 };

#define TIMER ((const struct timer_registers *)BOARD_TIMER_BASE)
#define UART ((struct uart_registers *)BOARD_UART_BASE)
#define NOC_PE (*(const volatile uint32_t *)(BOARD_NOC_BASE + 0x10U))

void hal_init(void)
{
    /* Nothing to switch on: clock, timer and UART run from reset. */
}

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

void hal_count(struct hal_counters *counters)
{
    const uint32_t cycles = TIMER->cycles_lo;
    counters->cycles = join(cycles, TIMER->cycles_hi);
    const uint32_t instructions = TIMER->instructions_lo;
    counters->instructions = join(instructions, TIMER->instructions_hi);
    const uint32_t asleep = TIMER->sleep_lo;
    counters->asleep = join(asleep, TIMER->sleep_hi);
}

void hal_wait(void)
{
    __asm volatile("wfe" ::: "memory");
}

uint32_t hal_pe(void)
{
    return NOC_PE;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    return noc_copy(pe, address, hal_pe(), (uint32_t)to, bytes) == 0;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    return noc_copy(hal_pe(), (uint32_t)from, pe, address, bytes) == 0;
}

bool hal_link_present(void)
{
    return hal_pe() == BOARD_ROOT_PE;
}

bool hal_link_readable(void)
{
    return (UART->status & UART_READABLE) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)UART->data;
}

void hal_link_write(uint8_t byte)
{
    while ((UART->status & UART_WRITABLE) == 0) {
    }
    UART->data = byte;
}
