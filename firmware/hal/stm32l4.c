/* SPDX-License-Identifier: Apache-2.0 */
/* STM32L4+ (ST RM0432) at 120 MHz from the internal oscillator: any crystal or none will do. Host link: LPUART 1.
 * Clock: the core's cycle counter. */
#include "hal.h"

#include "board.h"
#include "single_core.h"
#include "stm32.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCK_CONTROL REGISTER(0x40021000U)
#define CLOCK_CONFIGURATION REGISTER(0x40021008U)
#define PLL_CONFIGURATION REGISTER(0x4002100CU)
#define AHB2_ENABLE REGISTER(0x4002104CU)
#define APB1_ENABLE REGISTER(0x40021058U)
#define APB1_ENABLE_2 REGISTER(0x4002105CU)
#define FLASH_ACCESS REGISTER(0x40022000U)
#define SUPPLY_OF_PINS REGISTER(0x40007004U)
#define SUPPLY_BOOST REGISTER(0x40007080U)
#define COUNTER ((struct cycle_counter *)BOARD_TIMER_BASE)

enum { GPIO_BASE = 0x48000000, FUNCTION_LPUART = 8, POWER_ENABLE = 1 << 28, LPUART_ENABLE = 1 << 0 };
enum { OSCILLATOR_ON = 1 << 8, OSCILLATOR_READY = 1 << 10, PLL_ON = 1 << 24, PLL_READY = 1 << 25 };
enum { BY_2_TIMES_30_BY_2 = 1 << 4 | 30 << 8, FROM_OSCILLATOR = 2, TO_THE_SYSTEM = 1 << 24 };
enum { FROM_PLL = 3, IS_FROM_PLL = 3 << 2, HALF = 8 << 4, NOT_BOOSTED = 1 << 8, PORT_G_SUPPLIED = 1 << 9 };
enum { FIVE_WAIT_STATES = 5, PREFETCH = 1 << 8, CACHES = 3 << 9, LPUART_PARTS = 256 };

_Static_assert(BOARD_CLOCK_HZ == 120000000U && BOARD_UART_BASE == 0x40008000U, "what is set up here");

/* Above 80 MHz the core's supply is boosted, and the clock rises in two steps. */
static void speed_up(void)
{
    APB1_ENABLE |= POWER_ENABLE;
    SUPPLY_BOOST &= ~(uint32_t)NOT_BOOSTED;
    FLASH_ACCESS = FIVE_WAIT_STATES | PREFETCH | CACHES;
    CLOCK_CONTROL |= OSCILLATOR_ON;
    await(&CLOCK_CONTROL, OSCILLATOR_READY);
    PLL_CONFIGURATION = BY_2_TIMES_30_BY_2 | FROM_OSCILLATOR | TO_THE_SYSTEM;
    CLOCK_CONTROL |= PLL_ON;
    await(&CLOCK_CONTROL, PLL_READY);
    CLOCK_CONFIGURATION = HALF | FROM_PLL;
    await(&CLOCK_CONFIGURATION, IS_FROM_PLL);
    for (volatile uint32_t turns = 0; turns < 100U; turns++) {
    }
    CLOCK_CONFIGURATION = FROM_PLL;
}

void hal_init(void)
{
    speed_up();
    SUPPLY_OF_PINS |= PORT_G_SUPPLIED;
    AHB2_ENABLE |= 1U << BOARD_UART_SEND_PIN / PINS_A_PORT | 1U << BOARD_UART_RECEIVE_PIN / PINS_A_PORT;
    APB1_ENABLE_2 |= LPUART_ENABLE;
    (void)APB1_ENABLE_2; /* an enabled clock takes two cycles to start */
    connect_pin(GPIO_BASE, BOARD_UART_SEND_PIN, FUNCTION_LPUART);
    connect_pin(GPIO_BASE, BOARD_UART_RECEIVE_PIN, FUNCTION_LPUART);
    USART->baud = (uint32_t)((uint64_t)LPUART_PARTS * BOARD_CLOCK_HZ / BOARD_UART_BAUD);
    USART->control1 = USART_ENABLE | USART_SEND | USART_RECEIVE;
    cycle_counter_start(COUNTER);
    clock_begin();
}

uint32_t clock_now(void)
{
    return COUNTER->count;
}

bool hal_link_readable(void)
{
    return (USART->status & USART_RECEIVED) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)USART->receive;
}

void hal_link_write(uint8_t byte)
{
    while ((USART->status & USART_SENDABLE) == 0) {
    }
    USART->send = byte;
}
