/* SPDX-License-Identifier: Apache-2.0 */
/* Processing elements of the pe-mesh boards: boards/pe-mesh.md, sections 2, 4, 5 and 7. */
#include "hal.h"

#include "board.h"
#include "core_events.h"
#include "noc.h"

struct timer_registers {
    volatile uint32_t cycles_lo;
    volatile uint32_t cycles_hi; /* latched by reading cycles_lo; the same for the other pairs */
    volatile uint32_t instructions_lo;
    volatile uint32_t instructions_hi;
    volatile uint32_t sleep_lo;
    volatile uint32_t sleep_hi;
};

struct uart_registers {
    volatile uint32_t data;
    volatile uint32_t status;
};

enum { UART_READABLE = 1, UART_WRITABLE = 2, CYCLES_OF_A_TURN = 4 };

enum { CYCLES_OF_A_BYTE = 10 * (BOARD_CLOCK_HZ / BOARD_UART_BAUD) };

/* Cycles until a full UART buffer is on the wire. */
enum { CYCLES_TO_SEND = 32 * CYCLES_OF_A_BYTE };

#define TIMER ((const struct timer_registers *)BOARD_TIMER_BASE)
#define UART ((struct uart_registers *)BOARD_UART_BASE)

/* Register that restarts the board: the boot controller's RESTART or, without a boot controller, the core's reset
 * request. */
#ifdef BOARD_FLASH_BASE
#define RESTART (*(volatile uint32_t *)(BOARD_FLASH_BASE + 0x20U))
#define FLASH_DATA (*(volatile uint32_t *)(BOARD_FLASH_BASE + 0x08U))
#define FLASH_STATUS (*(const volatile uint32_t *)(BOARD_FLASH_BASE + 0x0CU))
#define WATCHDOG (*(volatile uint32_t *)(BOARD_FLASH_BASE + 0x24U))
enum { FLASH_BUSY = 1 };
#else
#define RESTART (*(volatile uint32_t *)0xE000ED0CU)
#endif
enum { RESTART_NOW = 0x05FA0004 }; /* the key of the core's register; the boot controller takes any value */

#define NOC_PE (*(const volatile uint32_t *)(BOARD_NOC_BASE + 0x10U))

void hal_init(void)
{
    /* Nothing to switch on: clock, timer and UART run from reset. */
}

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static inline uint64_t cycles_now(void)
{
    const uint32_t cycles = TIMER->cycles_lo;
    return join(cycles, TIMER->cycles_hi);
}

uint64_t hal_cycles(void)
{
    return cycles_now();
}

void hal_count(struct hal_counters *counters)
{
    counters->cycles = cycles_now();
    const uint32_t instructions = TIMER->instructions_lo;
    counters->instructions = join(instructions, TIMER->instructions_hi);
    const uint32_t asleep = TIMER->sleep_lo;
    counters->asleep = join(asleep, TIMER->sleep_hi);
}

void hal_wait(void)
{
    core_wait_for_event();
}

_Noreturn void hal_reset(void)
{
    const uint64_t sent = hal_cycles() + CYCLES_TO_SEND;
    while (hal_cycles() < sent) {
    }
    RESTART = RESTART_NOW;
    for (;;) {
        hal_wait();
    }
}

#ifdef BOARD_FLASH_BASE
bool hal_is_on_trial(void)
{
    return hal_link_present() && WATCHDOG != 0;
}

/* Write the confirmation mark at the flash address that the loader has set. Only then stop the watchdog. */
void hal_confirm(void)
{
    FLASH_DATA = HAL_CONFIRMED;
    while ((FLASH_STATUS & FLASH_BUSY) != 0) {
        hal_wait();
    }
    WATCHDOG = 0;
}

/* The provisioning region, which says whose images the board accepts. */
bool hal_may_be_read(uint32_t address, uint32_t bytes)
{
    const uint32_t at = address - BOARD_PROVISION_BASE;
    return hal_link_present() && at <= BOARD_PROVISION_BYTES && bytes <= BOARD_PROVISION_BYTES - at;
}
#else
bool hal_is_on_trial(void)
{
    return false;
}

void hal_confirm(void)
{
}

bool hal_may_be_read(uint32_t address, uint32_t bytes)
{
    (void)address, (void)bytes;
    return false;
}
#endif

uint32_t hal_pe(void)
{
    return NOC_PE;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    return noc_copy(pe, address, hal_pe(), (uint32_t)to, bytes) == 0;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    return noc_copy(hal_pe(), (uint32_t)from, pe, address, bytes) == 0;
}

bool hal_link_present(void)
{
    return hal_pe() == BOARD_ROOT_PE;
}

bool hal_link_readable(void)
{
    return (UART->status & UART_READABLE) != 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)UART->data;
}

void hal_link_write(uint8_t byte)
{
    while ((UART->status & UART_WRITABLE) == 0) {
        /* Poll once per byte, to leave the peripherals to others. The bytes in the UART's buffer keep the line busy. */
        for (uint32_t turn = 0; turn < CYCLES_OF_A_BYTE / CYCLES_OF_A_TURN; turn++) {
            __asm volatile("nop");
        }
    }
    UART->data = byte;
}
