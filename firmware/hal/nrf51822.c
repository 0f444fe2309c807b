/* SPDX-License-Identifier: Apache-2.0 */
/* nRF51822 (Nordic nRF51 Series Reference Manual 3.0). Host link: the UART, on the micro:bit wired to the debugger's
 * USB port. Clock: timer 0, which counts core cycles once the crystal runs. */
#include "hal.h"

#include <stddef.h>

#include "board.h"
#include "single_core.h"

struct uart_registers {
    volatile uint32_t start_receive;
    volatile uint32_t stop_receive;
    volatile uint32_t start_send;
    volatile uint32_t unused0[63];
    volatile uint32_t received; /* events from here on: 0x108 */
    volatile uint32_t unused1[4];
    volatile uint32_t sent; /* 0x11C */
    volatile uint32_t unused2[248];
    volatile uint32_t enable; /* 0x500 */
    volatile uint32_t unused3[2];
    volatile uint32_t pin_txd; /* 0x50C */
    volatile uint32_t unused4;
    volatile uint32_t pin_rxd; /* 0x514 */
    volatile uint32_t receive;
    volatile uint32_t send;
    volatile uint32_t unused5;
    volatile uint32_t baud; /* 0x524 */
};

struct timer_registers {
    volatile uint32_t start;
    volatile uint32_t unused0[15];
    volatile uint32_t capture; /* 0x040 */
    volatile uint32_t unused1[304];
    volatile uint32_t mode; /* 0x504 */
    volatile uint32_t bit_mode;
    volatile uint32_t unused2;
    volatile uint32_t prescaler; /* 0x510 */
    volatile uint32_t unused3[11];
    volatile uint32_t captured; /* 0x540 */
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(offsetof(struct uart_registers, received) == 0x108, "RXDRDY");
_Static_assert(offsetof(struct uart_registers, sent) == 0x11C, "TXDRDY");
_Static_assert(offsetof(struct uart_registers, enable) == 0x500, "ENABLE");
_Static_assert(offsetof(struct uart_registers, pin_rxd) == 0x514, "PSELRXD");
_Static_assert(offsetof(struct uart_registers, baud) == 0x524, "BAUDRATE");
_Static_assert(offsetof(struct timer_registers, capture) == 0x040, "CAPTURE[0]");
_Static_assert(offsetof(struct timer_registers, mode) == 0x504, "MODE");
_Static_assert(offsetof(struct timer_registers, prescaler) == 0x510, "PRESCALER");
_Static_assert(offsetof(struct timer_registers, captured) == 0x540, "CC[0]");
#endif

#define GPIO_SET (*(volatile uint32_t *)0x50000508U)
#define GPIO_OUTPUTS (*(volatile uint32_t *)0x50000518U)
#define CRYSTAL_START (*(volatile uint32_t *)0x40000000U)

enum { UART_ENABLE = 4, PIN_TXD = 24, PIN_RXD = 25, BAUD_115200 = 0x01D7E000, BITS_32 = 3 };

_Static_assert(BOARD_UART_BAUD == 115200U, "the register's values for other rates are not here");

#define UART ((struct uart_registers *)BOARD_UART_BASE)
#define TIMER ((struct timer_registers *)BOARD_TIMER_BASE)

void hal_init(void)
{
    CRYSTAL_START = 1;
    TIMER->mode = 0;
    TIMER->bit_mode = BITS_32;
    TIMER->prescaler = 0;
    TIMER->start = 1;
    clock_begin();
    GPIO_SET = 1U << PIN_TXD; /* the line's idle level, before the pin drives it */
    GPIO_OUTPUTS = 1U << PIN_TXD;
    UART->pin_txd = PIN_TXD;
    UART->pin_rxd = PIN_RXD;
    UART->baud = BAUD_115200;
    UART->enable = UART_ENABLE;
    UART->start_receive = 1;
    UART->start_send = 1;
}

uint32_t clock_now(void)
{
    TIMER->capture = 1;
    return TIMER->captured;
}

bool hal_link_readable(void)
{
    return UART->received != 0;
}

uint8_t hal_link_read(void)
{
    UART->received = 0;
    return (uint8_t)UART->receive;
}

void hal_link_write(uint8_t byte)
{
    UART->sent = 0;
    UART->send = byte;
    while (UART->sent == 0) {
    }
}
