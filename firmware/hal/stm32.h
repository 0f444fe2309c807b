/* SPDX-License-Identifier: Apache-2.0 */
/* Pins and USARTs common to the STM32 families of the last ten years. */
#ifndef STM32_H
#define STM32_H

#include <stdbool.h>
#include <stdint.h>

#include "board.h"

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
    volatile uint32_t control1;
    volatile uint32_t control2;
    volatile uint32_t control3;
    volatile uint32_t baud;
    volatile uint32_t unused[3];
    volatile uint32_t status; /* 0x1C */
    volatile uint32_t clear;
    volatile uint32_t receive;
    volatile uint32_t send;
};

enum { USART_ENABLE = 1 << 0, USART_RECEIVE = 1 << 2, USART_SEND = 1 << 3 };
enum { USART_RECEIVED = 1 << 5, USART_SENDABLE = 1 << 7 };
enum { GPIO_PORT_BYTES = 0x400, PINS_A_PORT = 16, MODE_ALTERNATE = 2, PULL_UP = 1 };

#define USART ((struct usart_registers *)BOARD_UART_BASE)

static inline void await(const volatile uint32_t *place, uint32_t bits)
{
    while ((*place & bits) != bits) {
    }
}

/* Connect a pin to a function. `ports`: the address of port A's registers. `pin`: the number in the board file, 16 to a
 * port from port A on. */
static inline void connect_pin(uint32_t ports, uint32_t pin, uint32_t function)
{
    struct gpio_registers *const port = (struct gpio_registers *)(ports + pin / PINS_A_PORT * GPIO_PORT_BYTES);
    const uint32_t number = pin % PINS_A_PORT, two_bits = 2U * number, four_bits = 4U * (number % 8U);
    volatile uint32_t *const functions = &port->function[number / 8U];
    *functions = (*functions & ~(0xFU << four_bits)) | function << four_bits;
    port->pull = (port->pull & ~(3U << two_bits)) | (uint32_t)PULL_UP << two_bits;
    port->mode = (port->mode & ~(3U << two_bits)) | (uint32_t)MODE_ALTERNATE << two_bits;
}

#endif
