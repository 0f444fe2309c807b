/* SPDX-License-Identifier: Apache-2.0 */
/* STM32F405 and F407 (ST RM0090). Host link: USART 1 (PA9, PA10) or USART 2 (PA2, PA3).
 *
 * At 168 MHz, the full speed, the clock is the core's cycle counter. The speed comes from the internal oscillator: any
 * crystal or none will do. At 16 MHz, the speed after reset, the clock may also be timer 2, which QEMU has. */
#include "hal.h"

#include "board.h"
#include "single_core.h"

struct rcc_registers {
    volatile uint32_t control;
    volatile uint32_t pll;
    volatile uint32_t configuration;
    volatile uint32_t others[9];
    volatile uint32_t ahb1_enable;
    volatile uint32_t ahb2_enable;
    volatile uint32_t ahb3_enable;
    volatile uint32_t reserved;
    volatile uint32_t apb1_enable;
    volatile uint32_t apb2_enable;
};

struct gpio_registers {
    volatile uint32_t mode;
    volatile uint32_t output_type;
    volatile uint32_t speed;
    volatile uint32_t pull;
    volatile uint32_t input;
    volatile uint32_t output;
    volatile uint32_t set;
    volatile uint32_t lock;
    volatile uint32_t function[2];
};

struct usart_registers {
    volatile uint32_t status;
    volatile uint32_t data;
    volatile uint32_t baud;
    volatile uint32_t control1;
};

struct timer_registers {
    volatile uint32_t control;
    volatile uint32_t unused[4];
    volatile uint32_t generate;
    volatile uint32_t modes[3];
    volatile uint32_t count;
    volatile uint32_t prescaler;
    volatile uint32_t reload;
};

enum { RCC_BASE = 0x40023800, GPIOA_BASE = 0x40020000, USART1_BASE = 0x40011000, USART2_BASE = 0x40004400 };
enum { GPIOA_ENABLE = 1 << 0, TIM2_ENABLE = 1 << 0, USART2_ENABLE = 1 << 17, USART1_ENABLE = 1 << 4 };
enum { USART_RECEIVED = 1 << 5, USART_SENDABLE = 1 << 7 };
enum { USART_ENABLE = 1 << 13, USART_SEND = 1 << 3, USART_RECEIVE = 1 << 2 };
enum { TIMER_ENABLE = 1, TIMER_UPDATE = 1 };
enum { OSCILLATOR_HZ = 16000000, FULL_HZ = 168000000, AT_FULL_SPEED = BOARD_CLOCK_HZ == FULL_HZ };
enum { PLL_ON = 1 << 24, PLL_READY = 1 << 25, FROM_PLL = 2, IS_FROM_PLL = 2 << 2, LONGEST_LOCK = 10000 };
enum { APB1_A_QUARTER = 5 << 10, APB2_A_HALF = 4 << 13, BUS_PART = BOARD_UART_BASE == USART1_BASE ? 2 : 4 };
enum { BY_8_TIMES_168_BY_2 = 8 | 168 << 6, FOR_USB_BY_7 = 7 << 24 };
enum { FIVE_WAIT_STATES = 5, PREFETCH = 1 << 8, CACHES = 3 << 9 };
enum { UART_CLOCK_HZ = AT_FULL_SPEED ? FULL_HZ / BUS_PART : OSCILLATOR_HZ };
enum { TIMER2_BASE = 0x40000000, HAS_CYCLE_COUNTER = BOARD_TIMER_BASE != TIMER2_BASE };
enum { MODE_ALTERNATE = 2, PULL_UP = 1, FUNCTION_USART = 7 };
enum { FIRST_PIN = BOARD_UART_BASE == USART1_BASE ? 9 : 2 }; /* sending; the next pin is receiving */

_Static_assert(AT_FULL_SPEED ? HAS_CYCLE_COUNTER : BOARD_CLOCK_HZ == OSCILLATOR_HZ, "timer 2 counts no cycles then");
_Static_assert(BOARD_UART_BASE == USART1_BASE || BOARD_UART_BASE == USART2_BASE, "the pins of the others are not here");

#define RCC ((struct rcc_registers *)RCC_BASE)
#define GPIOA ((struct gpio_registers *)GPIOA_BASE)
#define USART ((struct usart_registers *)BOARD_UART_BASE)
#define TIMER ((struct timer_registers *)TIMER2_BASE)
#define COUNTER ((struct cycle_counter *)BOARD_TIMER_BASE)
#define FLASH_ACCESS (*(volatile uint32_t *)0x40023C00U)

/* Wait until a bit is set, but not for ever: an emulator may lack the bit. */
static bool comes(const volatile uint32_t *place, uint32_t bit)
{
    for (uint32_t turns = 0; turns < LONGEST_LOCK; turns++) {
        if ((*place & bit) != 0U) {
            return true;
        }
    }
    return false;
}

static void speed_up(void)
{
    FLASH_ACCESS = FIVE_WAIT_STATES | PREFETCH | CACHES;
    RCC->pll = BY_8_TIMES_168_BY_2 | FOR_USB_BY_7;
    RCC->control |= PLL_ON;
    if (comes(&RCC->control, PLL_READY)) {
        RCC->configuration = APB1_A_QUARTER | APB2_A_HALF | FROM_PLL;
        (void)comes(&RCC->configuration, IS_FROM_PLL);
    }
}

static void connect_pin(uint32_t pin)
{
    const uint32_t two_bits = 2U * pin, four_bits = 4U * (pin % 8U);
    volatile uint32_t *function = &GPIOA->function[pin / 8U];
    *function = (*function & ~(0xFU << four_bits)) | (uint32_t)FUNCTION_USART << four_bits;
    GPIOA->pull = (GPIOA->pull & ~(3U << two_bits)) | (uint32_t)PULL_UP << two_bits;
    GPIOA->mode = (GPIOA->mode & ~(3U << two_bits)) | (uint32_t)MODE_ALTERNATE << two_bits;
}

static void enable_clocks(void)
{
    RCC->ahb1_enable |= GPIOA_ENABLE;
    RCC->apb1_enable |= TIM2_ENABLE | (BOARD_UART_BASE == USART2_BASE ? (uint32_t)USART2_ENABLE : 0U);
    RCC->apb2_enable |= BOARD_UART_BASE == USART1_BASE ? (uint32_t)USART1_ENABLE : 0U;
    (void)RCC->apb2_enable; /* an enabled clock takes two cycles to start */
}

static void start_clock(void)
{
    if (HAS_CYCLE_COUNTER) {
        cycle_counter_start(COUNTER);
    } else {
        TIMER->reload = UINT32_MAX;
        TIMER->generate = TIMER_UPDATE;
        TIMER->control = TIMER_ENABLE;
    }
    clock_begin();
}

void hal_init(void)
{
    if (AT_FULL_SPEED) {
        speed_up();
    }
    enable_clocks();
    connect_pin(FIRST_PIN);
    connect_pin(FIRST_PIN + 1);
    USART->baud = (UART_CLOCK_HZ + BOARD_UART_BAUD / 2U) / BOARD_UART_BAUD;
    USART->control1 = USART_ENABLE | USART_SEND | USART_RECEIVE;
    start_clock();
}

uint32_t clock_now(void)
{
    return HAS_CYCLE_COUNTER ? COUNTER->count : TIMER->count;
}

bool hal_link_readable(void)
{
    return (USART->status & USART_RECEIVED) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)USART->data;
}

void hal_link_write(uint8_t byte)
{
    while ((USART->status & USART_SENDABLE) == 0) {
    }
    USART->data = byte;
}
