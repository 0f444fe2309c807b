/* The MPS2+ board with Arm's FPGA images AN385 and AN386: CMSDK UART 0 and timer 0 (Arm DDI 0479, DAI 0385, DAI 0386). */
#include "hal.h"

#include "board.h"
#include "single_core.h"

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

void hal_init(void)
{
    TIMER->reload = UINT32_MAX;
    TIMER->value = UINT32_MAX;
    TIMER->control = TIMER_ENABLE;
    clock_begin();
    UART->baud_divider = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    UART->control = UART_SEND_ENABLE | UART_RECEIVE_ENABLE;
    (void)hal_link_read(); /* whatever came before; QEMU also looks at its input again only when this is read */
}

uint32_t clock_now(void)
{
    return UINT32_MAX - TIMER->value; /* it counts down */
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
