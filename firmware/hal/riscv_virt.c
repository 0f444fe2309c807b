/* SPDX-License-Identifier: Apache-2.0 */
/* QEMU's RISC-V machine "virt": a UART like National Semiconductor's 16550, mtime of the core-local interruptor, and
 * SiFive's test device, which resets the machine. */
#include "hal.h"

#include "board.h"
#include "core.h"
#include "single_core.h"

struct uart_registers {
    volatile uint8_t data;
    volatile uint8_t interrupt;
    volatile uint8_t fifo;
    volatile uint8_t line_control;
    volatile uint8_t modem_control;
    const volatile uint8_t line_status;
};

enum { LINE_READABLE = 1 << 0, LINE_WRITABLE = 1 << 5, EIGHT_BITS = 3, FIFO_ENABLE = 1 };

#define UART ((struct uart_registers *)BOARD_UART_BASE)
#define MTIME (*(const volatile uint32_t *)BOARD_TIMER_BASE)
#define TEST_DEVICE (*(volatile uint32_t *)0x00100000U)
enum { TEST_RESET = 0x7777 };

void hal_init(void)
{
    UART->line_control = EIGHT_BITS;
    UART->fifo = FIFO_ENABLE;
    clock_begin();
}

uint32_t clock_now(void)
{
    return MTIME;
}

_Noreturn void core_restart(void)
{
    TEST_DEVICE = TEST_RESET;
    for (;;) {
    }
}

bool hal_link_readable(void)
{
    return (UART->line_status & LINE_READABLE) != 0;
}

uint8_t hal_link_read(void)
{
    return UART->data;
}

void hal_link_write(uint8_t byte)
{
    while ((UART->line_status & LINE_WRITABLE) == 0) {
    }
    UART->data = byte;
}
