/* SPDX-License-Identifier: Apache-2.0 */
/* STM32H743 (ST RM0433) at 400 MHz from the internal oscillator, caches on. Host link: USART 3. Clock: the core's cycle
 * counter. */
#include "hal.h"

#include "board.h"
#include "core_events.h"
#include "single_core.h"
#include "stm32.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define CLOCK_CONTROL REGISTER(0x58024400U)
#define CLOCK_CONFIGURATION REGISTER(0x58024410U)
#define CORE_DIVIDERS REGISTER(0x58024418U)
#define APB1_DIVIDERS REGISTER(0x5802441CU)
#define APB4_DIVIDER REGISTER(0x58024420U)
#define PLL_SOURCES REGISTER(0x58024428U)
#define PLL_CONFIGURATION REGISTER(0x5802442CU)
#define PLL_DIVIDERS REGISTER(0x58024430U)
#define AHB4_ENABLE REGISTER(0x580244E0U)
#define APB1_ENABLE REGISTER(0x580244E8U)
#define FLASH_ACCESS REGISTER(0x52002000U)
#define SUPPLY_STATE REGISTER(0x58024804U)
#define SUPPLY REGISTER(0x5802480CU)
#define VOLTAGE REGISTER(0x58024818U)
#define COUNTER ((struct cycle_counter *)BOARD_TIMER_BASE)

/* Cache registers of the system control block (Armv7-M, B3.2). */
#define CACHE_CONTROL REGISTER(0xE000ED14U)
#define FORGET_INSTRUCTIONS REGISTER(0xE000EF50U)
#define FORGET_DATA REGISTER(0xE000EF60U)
enum { CACHE_WAYS = 4, CACHE_SETS = 128, WAY_SHIFT = 30, SET_SHIFT = 5, DATA_CACHE = 1 << 16, CODE_CACHE = 1 << 17 };

enum { GPIO_BASE = 0x58020000, FUNCTION_USART = 7, USART3_ENABLE = 1 << 18, USART_HZ = BOARD_CLOCK_HZ / 4 };
enum { SUPPLY_WAYS = 7, BY_REGULATOR = 2, SUPPLY_READY = 1 << 13, HIGHEST_SCALE = 3 << 14, SCALE_READY = 1 << 13 };
enum { OSCILLATOR_BY_4 = 4 << 4, TIMES_50_BY_2 = 49 | 1 << 9, INPUT_8_TO_16_MHZ = 3 << 2, DIVIDER_P = 1 << 16 };
enum { PLL_ON = 1 << 24, PLL_READY = 1 << 25, FROM_PLL = 3, IS_FROM_PLL = 3 << 3 };
enum { BUS_HALF_APB3_HALF = 8 | 4 << 4, APB1_HALF_APB2_HALF = 4 << 4 | 4 << 8, APB4_HALF = 4 << 4 };
enum { TWO_WAIT_STATES = 2, PROGRAMS_FAST = 2 << 4 };

_Static_assert(BOARD_CLOCK_HZ == 400000000U && BOARD_UART_BASE == 0x40004800U, "what is set up here");

/* The voltage rises first, then flash's wait states and the bus dividers are set, then the clock rises. */
static void speed_up(void)
{
    SUPPLY = (SUPPLY & ~(uint32_t)SUPPLY_WAYS) | BY_REGULATOR;
    await(&SUPPLY_STATE, SUPPLY_READY);
    VOLTAGE |= HIGHEST_SCALE;
    await(&VOLTAGE, SCALE_READY);
    FLASH_ACCESS = TWO_WAIT_STATES | PROGRAMS_FAST;
    CORE_DIVIDERS = BUS_HALF_APB3_HALF;
    APB1_DIVIDERS = APB1_HALF_APB2_HALF;
    APB4_DIVIDER = APB4_HALF;
    PLL_SOURCES = OSCILLATOR_BY_4;
    PLL_CONFIGURATION = INPUT_8_TO_16_MHZ | DIVIDER_P;
    PLL_DIVIDERS = TIMES_50_BY_2;
    CLOCK_CONTROL |= PLL_ON;
    await(&CLOCK_CONTROL, PLL_READY);
    CLOCK_CONFIGURATION = FROM_PLL;
    await(&CLOCK_CONFIGURATION, IS_FROM_PLL);
}

/* Invalidate the caches, which are undefined at power-on, then enable them. */
static void start_caches(void)
{
    FORGET_INSTRUCTIONS = 0;
    for (uint32_t set = 0; set < CACHE_SETS; set++) {
        for (uint32_t way = 0; way < CACHE_WAYS; way++) {
            FORGET_DATA = way << WAY_SHIFT | set << SET_SHIFT;
        }
    }
    core_order_memory();
    CACHE_CONTROL |= CODE_CACHE | DATA_CACHE;
    core_order_memory();
    __asm volatile("isb" ::: "memory");
}

void hal_init(void)
{
    speed_up();
    start_caches();
    AHB4_ENABLE |= 1U << BOARD_UART_SEND_PIN / PINS_A_PORT | 1U << BOARD_UART_RECEIVE_PIN / PINS_A_PORT;
    APB1_ENABLE |= USART3_ENABLE;
    (void)APB1_ENABLE; /* an enabled clock takes two cycles to start */
    connect_pin(GPIO_BASE, BOARD_UART_SEND_PIN, FUNCTION_USART);
    connect_pin(GPIO_BASE, BOARD_UART_RECEIVE_PIN, FUNCTION_USART);
    USART->baud = (USART_HZ + BOARD_UART_BAUD / 2U) / BOARD_UART_BAUD;
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
