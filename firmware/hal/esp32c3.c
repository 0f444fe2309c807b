/* SPDX-License-Identifier: Apache-2.0 */
/* ESP32-C3 (Espressif's technical reference manual). Host link: UART 0, which the ROM has set up for 115200 baud from
 * the crystal. Clock: the system timer, two ticks for five core cycles at 40 MHz.
 *
 * The ROM starts the program directly in flash, because the image begins with the two words of `starts_directly`. */
#include "hal.h"

#include "board.h"
#include "core.h"
#include "single_core.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define SYSTEM_CLOCK REGISTER(0x600C0058U)
#define OPTIONS REGISTER(0x60008000U)
#define WATCHDOG REGISTER(0x60008090U)
#define WATCHDOG_KEY REGISTER(0x600080A8U)
#define SUPER_WATCHDOG REGISTER(0x600080ACU)
#define SUPER_WATCHDOG_KEY REGISTER(0x600080B0U)
#define TIMER_WATCHDOG REGISTER(0x6001F048U)
#define TIMER_WATCHDOG_KEY REGISTER(0x6001F064U)
#define UART_BYTE REGISTER(BOARD_UART_BASE)
#define UART_STATUS REGISTER(BOARD_UART_BASE + 0x1CU)
#define TIMER_TAKE REGISTER(BOARD_TIMER_BASE + 0x04U)
#define TIMER_COUNT REGISTER(BOARD_TIMER_BASE + 0x44U)

enum { CRYSTAL_HZ = 40000000, FROM_CRYSTAL_UNDIVIDED = 0, TAKE_NOW = 1 << 30, TAKEN = 1 << 29 };
enum { RECEIVED_COUNT = 0x3FF, SENDING_SHIFT = 16, SENDING_COUNT = 0x3FF, MOST_SENDING = 128 };
#define FEEDS_ITSELF 0x80000000U
#define RESTART 0x80000000U
#define KEY 0x50D83AA1U
#define SUPER_KEY 0x8F1D312AU

_Static_assert(BOARD_CLOCK_HZ == CRYSTAL_HZ && BOARD_UART_BAUD == 115200U, "as the ROM leaves them");

__attribute__((section(".boot"), used)) static const uint32_t starts_directly[2] = {0xAEDB041DU, 0xAEDB041DU};

/* Stop the watchdogs, which the ROM leaves running for a boot loader. */
static void stop_watchdogs(void)
{
    WATCHDOG_KEY = KEY;
    WATCHDOG = 0;
    SUPER_WATCHDOG_KEY = SUPER_KEY;
    SUPER_WATCHDOG |= FEEDS_ITSELF;
    TIMER_WATCHDOG_KEY = KEY;
    TIMER_WATCHDOG = 0;
}

void hal_init(void)
{
    stop_watchdogs();
    SYSTEM_CLOCK = FROM_CRYSTAL_UNDIVIDED;
    clock_begin();
}

uint32_t clock_now(void)
{
    TIMER_TAKE = TAKE_NOW;
    while ((TIMER_TAKE & TAKEN) == 0) {
    }
    return TIMER_COUNT;
}

bool hal_link_readable(void)
{
    return (UART_STATUS & RECEIVED_COUNT) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)UART_BYTE;
}

void hal_link_write(uint8_t byte)
{
    while ((UART_STATUS >> SENDING_SHIFT & SENDING_COUNT) >= MOST_SENDING) {
    }
    UART_BYTE = byte;
}

_Noreturn void core_restart(void)
{
    OPTIONS = RESTART;
    for (;;) {
    }
}
