/* SPDX-License-Identifier: Apache-2.0 */
/* nRF52840 (Nordic PS 1.7) and the application core of the nRF5340 (PS 1.2), in its secure state, on their oscillators.
 * Host link: UARTE 0, one byte per DMA transfer. Clock: the core's cycle counter. The flash cache is on. */
#include "hal.h"

#include <stddef.h>

#include "board.h"
#include "core_events.h"
#include "single_core.h"

struct uarte_registers {
    volatile uint32_t start_receive;
    volatile uint32_t stop_receive;
    volatile uint32_t start_send;
    volatile uint32_t stop_send;
    volatile uint32_t unused0[64];
    volatile uint32_t received; /* events from here on: 0x110 */
    volatile uint32_t unused1[3];
    volatile uint32_t sent; /* 0x120 */
    volatile uint32_t unused2[247];
    volatile uint32_t enable; /* 0x500 */
    volatile uint32_t unused3;
    volatile uint32_t pin_rts; /* 0x508 */
    volatile uint32_t pin_txd;
    volatile uint32_t pin_cts;
    volatile uint32_t pin_rxd;
    volatile uint32_t unused4[3];
    volatile uint32_t baud; /* 0x524 */
    volatile uint32_t unused5[3];
    const uint8_t *volatile receive_to; /* 0x534 */
    volatile uint32_t receive_bytes;
    volatile uint32_t receive_amount;
    volatile uint32_t unused6;
    const uint8_t *volatile send_from; /* 0x544 */
    volatile uint32_t send_bytes;
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(offsetof(struct uarte_registers, received) == 0x110, "EVENTS_ENDRX");
_Static_assert(offsetof(struct uarte_registers, sent) == 0x120, "EVENTS_ENDTX");
_Static_assert(offsetof(struct uarte_registers, enable) == 0x500, "ENABLE");
_Static_assert(offsetof(struct uarte_registers, baud) == 0x524, "BAUDRATE");
_Static_assert(offsetof(struct uarte_registers, receive_to) == 0x534, "RXD.PTR");
_Static_assert(offsetof(struct uarte_registers, send_from) == 0x544, "TXD.PTR");
#endif

enum { IS_NRF5340 = BOARD_UART_BASE == 0x50008000U, PINS_A_PORT = 32, PORT_BYTES = 0x300 };
enum { GPIO_BASE = (IS_NRF5340 ? 0x50842500 : 0x50000500) + BOARD_UART_SEND_PIN / PINS_A_PORT * PORT_BYTES };

#define GPIO_SET (*(volatile uint32_t *)(GPIO_BASE + 0x08U))
#define GPIO_OUTPUTS (*(volatile uint32_t *)(GPIO_BASE + 0x18U))
#define FLASH_CACHE (*(volatile uint32_t *)(IS_NRF5340 ? 0x50001500U : 0x4001E540U))
#define CORE_DIVIDER (*(volatile uint32_t *)0x50005558U) /* of the nRF5340: 1 and 0 for 64 and 128 MHz */

enum { UARTE_ENABLE = 8, BAUD_115200 = 0x01D60000, CACHE_ON = 1, SEND_BIT = BOARD_UART_SEND_PIN % PINS_A_PORT };

_Static_assert(BOARD_CLOCK_HZ == (IS_NRF5340 ? 128000000U : 64000000U), "what is set up here");

_Static_assert(BOARD_UART_BAUD == 115200U, "the register's values for other rates are not here");

#define UARTE ((struct uarte_registers *)BOARD_UART_BASE)
#define COUNTER ((struct cycle_counter *)BOARD_TIMER_BASE)

/* Buffers of the DMA. */
static volatile uint8_t received_byte, sent_byte;

static void receive_next(void)
{
    UARTE->received = 0;
    UARTE->receive_to = (const uint8_t *)&received_byte;
    UARTE->receive_bytes = 1;
    UARTE->start_receive = 1;
}

void hal_init(void)
{
    if (IS_NRF5340) {
        CORE_DIVIDER = 0;
    }
    FLASH_CACHE = CACHE_ON;
    GPIO_SET = 1U << SEND_BIT; /* the line's idle level, before the pin drives it */
    GPIO_OUTPUTS = 1U << SEND_BIT;
    UARTE->pin_txd = BOARD_UART_SEND_PIN;
    UARTE->pin_rxd = BOARD_UART_RECEIVE_PIN;
    UARTE->baud = BAUD_115200;
    UARTE->enable = UARTE_ENABLE;
    receive_next();
    cycle_counter_start(COUNTER);
    clock_begin();
}

uint32_t clock_now(void)
{
    return COUNTER->count;
}

bool hal_link_readable(void)
{
    return UARTE->received != 0;
}

uint8_t hal_link_read(void)
{
    const uint8_t byte = received_byte;
    receive_next();
    return byte;
}

void hal_link_write(uint8_t byte)
{
    sent_byte = byte;
    UARTE->sent = 0;
    UARTE->send_from = (const uint8_t *)&sent_byte;
    UARTE->send_bytes = 1;
    core_order_memory();
    UARTE->start_send = 1;
    while (UARTE->sent == 0) {
    }
}
