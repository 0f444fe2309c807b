/* STM32F4 (ST RM0090) as it comes out of reset, on its 16 MHz oscillator without wait states: the host link is USART 1
 * (PA9, PA10) or USART 2 (PA2, PA3), the clock is timer 2, which counts core cycles. */
#include "hal.h"

#include "board.h"
#include "single_core.h"

struct rcc_registers {
    volatile uint32_t control[12];
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
enum { MODE_ALTERNATE = 2, PULL_UP = 1, FUNCTION_USART = 7 };
enum { FIRST_PIN = BOARD_UART_BASE == USART1_BASE ? 9 : 2 }; /* the sending one; the receiving one is next */

_Static_assert(BOARD_UART_BASE == USART1_BASE || BOARD_UART_BASE == USART2_BASE, "the pins of the others are not here");

#define RCC ((struct rcc_registers *)RCC_BASE)
#define GPIOA ((struct gpio_registers *)GPIOA_BASE)
#define USART ((struct usart_registers *)BOARD_UART_BASE)
#define TIMER ((struct timer_registers *)BOARD_TIMER_BASE)

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
    (void)RCC->apb2_enable; /* a clock takes two cycles to come on */
}

void hal_init(void)
{
    enable_clocks();
    connect_pin(FIRST_PIN);
    connect_pin(FIRST_PIN + 1);
    USART->baud = BOARD_CLOCK_HZ / BOARD_UART_BAUD;
    USART->control1 = USART_ENABLE | USART_SEND | USART_RECEIVE;
    TIMER->reload = UINT32_MAX;
    TIMER->generate = TIMER_UPDATE;
    TIMER->control = TIMER_ENABLE;
    clock_begin();
}

uint32_t clock_now(void)
{
    return TIMER->count;
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
