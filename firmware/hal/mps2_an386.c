/* SPDX-License-Identifier: Apache-2.0 */
/* MPS2+ board with Arm's FPGA images AN385, AN386, AN500, AN505 and AN521: CMSDK UART 0 and timer 0 (Arm DDI 0479 and
 * each image's note). The second core of the AN521 waits until it is started (Arm's SSE-200). */
#include "hal.h"

#include "board.h"
#include "single_core.h"
#ifdef BOARD_NOC_BASE
#include "noc.h"
#endif

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

#ifdef BOARD_NOC_BASE

#define CORE_NUMBER (*(const volatile uint32_t *)0x5001F000U)
#define VECTORS_OF_CORE_1 (*(volatile uint32_t *)0x50021114U)
#define CORES_THAT_WAIT (*(volatile uint32_t *)0x50021118U)

uint32_t core_number(void)
{
    return CORE_NUMBER;
}

#endif

void hal_init(void)
{
#ifdef BOARD_NOC_BASE
    if (core_number() != BOARD_ROOT_PE) {
        clock_begin();
        return;
    }
    noc_clear();
#endif
    TIMER->reload = UINT32_MAX;
    TIMER->value = UINT32_MAX;
    TIMER->control = TIMER_ENABLE;
    clock_begin();
    UART->baud_divider = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    UART->control = UART_SEND_ENABLE | UART_RECEIVE_ENABLE;
    (void)hal_link_read(); /* discard an earlier byte; QEMU also checks for more input only after this read */
#ifdef BOARD_NOC_PROGRAM_1
    VECTORS_OF_CORE_1 = BOARD_NOC_PROGRAM_1;
    CORES_THAT_WAIT = 0;
#endif
}

uint32_t clock_now(void)
{
    return UINT32_MAX - TIMER->value;
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
