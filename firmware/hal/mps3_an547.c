/* SPDX-License-Identifier: Apache-2.0 */
/* MPS3 board with Arm's FPGA image AN547 (SSE-300): CMSDK UART 0 (Arm DDI 0479) and the system counter, as the system
 * timers show it (Arm 101773). */
#include "hal.h"

#include "board.h"
#include "single_core.h"

struct uart_registers {
    volatile uint32_t data;
    volatile uint32_t state;
    volatile uint32_t control;
    volatile uint32_t interrupt;
    volatile uint32_t baud_divider;
};

enum { UART_SEND_FULL = 1, UART_RECEIVE_FULL = 2 };
enum { UART_SEND_ENABLE = 1, UART_RECEIVE_ENABLE = 2 };
enum { COUNTER_ENABLE = 1 };

#define UART ((struct uart_registers *)BOARD_UART_BASE)
#define COUNTER_CONTROL (*(volatile uint32_t *)0x58100000U)
#define COUNTER_VALUE (*(const volatile uint32_t *)BOARD_TIMER_BASE)

void hal_init(void)
{
    COUNTER_CONTROL = COUNTER_ENABLE;
    clock_begin();
    UART->baud_divider = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    UART->control = UART_SEND_ENABLE | UART_RECEIVE_ENABLE;
    (void)hal_link_read(); /* discard an earlier byte; QEMU also checks for more input only after this read */
}

uint32_t clock_now(void)
{
    return COUNTER_VALUE;
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
