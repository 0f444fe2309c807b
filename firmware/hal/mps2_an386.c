/* The MPS2+ board with Arm's FPGA image AN386: CMSDK UART 0 and CMSDK timer 0 (Arm DDI 0479, DAI 0386). */
#include "hal.h"

#include "board.h"

struct timer_registers {
    volatile uint32_t control;
    volatile uint32_t value; /* counts down */
    volatile uint32_t reload;
    volatile uint32_t interrupt;
};

struct uart_registers {
    volatile uint32_t data;
    volatile uint32_t state;
    volatile uint32_t control;
    volatile uint32_t interrupt;
    volatile uint32_t baud_divider;
};

enum { TIMER_ENABLE = 1 };
enum { UART_SEND_FULL = 1, UART_RECEIVE_FULL = 2 };
enum { UART_SEND_ENABLE = 1, UART_RECEIVE_ENABLE = 2 };

#define TIMER ((struct timer_registers *)BOARD_TIMER_BASE)
#define UART ((struct uart_registers *)BOARD_UART_BASE)

static uint64_t ticks_before; /* up to the timer value last seen */
static uint32_t last_value;

void hal_init(void)
{
    TIMER->reload = UINT32_MAX;
    TIMER->value = UINT32_MAX;
    TIMER->control = TIMER_ENABLE;
    last_value = UINT32_MAX;
    UART->baud_divider = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    UART->control = UART_SEND_ENABLE | UART_RECEIVE_ENABLE;
    (void)hal_link_read(); /* whatever came before; QEMU also looks at its input again only when this is read */
}

/* Exact as long as it is called once per turn of the 32-bit timer (hal_wait does). */
static uint64_t ticks(void)
{
    const uint32_t value = TIMER->value;
    ticks_before += last_value - value;
    last_value = value;
    return ticks_before;
}

void hal_count(struct hal_counters *counters)
{
    counters->cycles = ticks();
    counters->instructions = counters->cycles * BOARD_INSTRUCTIONS_PER_TICK;
    counters->asleep = 0;
}

void hal_wait(void)
{
    /* No event wakes the core here, so waiting is polling. */
    (void)ticks();
}

uint32_t hal_pe(void)
{
    return 0;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    (void)pe, (void)address, (void)to, (void)bytes;
    return false;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    (void)pe, (void)address, (void)from, (void)bytes;
    return false;
}

bool hal_link_present(void)
{
    return true;
}

bool hal_link_readable(void)
{
    return (UART->state & UART_RECEIVE_FULL) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)UART->data;
}

void hal_link_write(uint8_t byte)
{
    while ((UART->state & UART_SEND_FULL) != 0) {
    }
    UART->data = byte;
}
