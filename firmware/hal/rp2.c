/* SPDX-License-Identifier: Apache-2.0 */
/* RP2040 and RP2350 (Raspberry Pi's data sheets), Arm or RISC-V. Host link: UART 0. Clock: timer 0 of the RP2350, which
 * counts core cycles, or the RP2040's timer, which counts microseconds. Both chips run from the board's 12 MHz crystal
 * and the system PLL. */
#include "hal.h"

#include "board.h"
#include "core.h"
#include "single_core.h"
#ifdef BOARD_NOC_BASE
#include "noc.h"
#endif

/* Addresses of devices that both chips have, and the bits of their resets. */
enum { IS_RP2040 = BOARD_UART_BASE == 0x40034000U };
enum {
    CLOCKS = IS_RP2040 ? 0x40008000 : 0x40010000,
    RESETS = IS_RP2040 ? 0x4000C000 : 0x40020000,
    PINS = IS_RP2040 ? 0x40014000 : 0x40028000,
    PADS = IS_RP2040 ? 0x4001C000 : 0x40038000,
    CRYSTAL = IS_RP2040 ? 0x40024000 : 0x40048000,
    PLL = IS_RP2040 ? 0x40028000 : 0x40050000,
    WATCHDOG = IS_RP2040 ? 0x40058000 : 0x400D8000,
    POWER_ON = IS_RP2040 ? 0x40010000 : 0x40018000,
};
enum { RESET_PLL = IS_RP2040 ? 1 << 12 : 1 << 14, RESET_PINS = IS_RP2040 ? 1 << 5 | 1 << 8 : 1 << 6 | 1 << 9 };
enum { RESET_TIMER = IS_RP2040 ? 1 << 21 : 1 << 23, RESET_UART = IS_RP2040 ? 1 << 22 : 1 << 26 };

enum { CRYSTAL_MHZ = 12, PLL_MULTIPLIER = 125, PLL_HZ = CRYSTAL_MHZ * PLL_MULTIPLIER * 1000000 };
enum { PLL_DIVIDER = PLL_HZ / BOARD_CLOCK_HZ / 2 }; /* a second divider halves again */
enum { CRYSTAL_ENABLE = 0xFAB000 | 0xAA0, CRYSTAL_WAITS = 47, PLL_PARTS_OFF = 1 << 3 | 1 << 2, DIVIDER_OFF = 1 << 3 };
enum { FROM_CRYSTAL = 2, FROM_PLL = 1, PERIPHERALS_ON = 1 << 11, TICK_ON = 1 << 9, FULL_SPEED = 1 };
enum { FUNCTION_UART = 2, PAD_WITH_INPUT = 0x56, EIGHT_BITS = 3 << 5, WITH_FIFO = 1 << 4, UART_ON = 1 | 1 << 8 | 1 << 9 };
enum { RECEIVE_EMPTY = 1 << 4, SEND_FULL = 1 << 5, UART_64THS = (8 * (BOARD_CLOCK_HZ / 2U) + BOARD_UART_BAUD / 2) / BOARD_UART_BAUD };

#define STARTED 0x80000000U /* status bit of the crystal and of the PLL */
#define RESTART 0x80000000U /* of the watchdog's control register */

_Static_assert(PLL_DIVIDER <= 7 && PLL_HZ == PLL_DIVIDER * 2 * BOARD_CLOCK_HZ, "a clock that the PLL makes");

static inline volatile uint32_t *at(uint32_t address)
{
    return (volatile uint32_t *)address;
}

static void await(uint32_t address, uint32_t bits)
{
    while ((*at(address) & bits) != bits) {
    }
}

static void end_reset(uint32_t devices)
{
    *at(RESETS) &= ~devices;
    await(RESETS + 0x8, devices);
}

static void start_clocks(void)
{
    *at(CRYSTAL + 0xC) = CRYSTAL_WAITS;
    *at(CRYSTAL) = CRYSTAL_ENABLE;
    await(CRYSTAL + 0x4, STARTED);
    *at(CLOCKS + 0x3C) = 0; /* system clock from the reference clock, reference clock from the crystal */
    await(CLOCKS + 0x44, 1U << 0);
    *at(CLOCKS + 0x30) = FROM_CRYSTAL;
    await(CLOCKS + 0x38, 1U << FROM_CRYSTAL);
    end_reset(RESET_PLL);
    *at(PLL) = 1;
    *at(PLL + 0x8) = PLL_MULTIPLIER;
    *at(PLL + 0x4) = PLL_PARTS_OFF;
    await(PLL, STARTED);
    *at(PLL + 0xC) = (uint32_t)PLL_DIVIDER << 16 | 2U << 12;
    *at(PLL + 0x4) = PLL_PARTS_OFF & ~(uint32_t)DIVIDER_OFF;
    *at(CLOCKS + 0x3C) = FROM_PLL;
    await(CLOCKS + 0x44, 1U << FROM_PLL);
    *at(CLOCKS + 0x48) = PERIPHERALS_ON;
}

static void start_timer(void)
{
    end_reset(RESET_TIMER);
    if (IS_RP2040) {
        *at(WATCHDOG + 0x2C) = CRYSTAL_MHZ | TICK_ON;
    } else {
        *at(BOARD_TIMER_BASE + 0x38) = FULL_SPEED;
    }
    clock_begin();
}

static void connect_pin(uint32_t pin)
{
    *at(PADS + 4U + 4U * pin) = PAD_WITH_INPUT;
    *at(PINS + 4U + 8U * pin) = FUNCTION_UART;
}

static void start_uart(void)
{
    end_reset(RESET_PINS | RESET_UART);
    connect_pin(BOARD_UART_SEND_PIN);
    connect_pin(BOARD_UART_RECEIVE_PIN);
    *at(BOARD_UART_BASE + 0x24) = UART_64THS / 64;
    *at(BOARD_UART_BASE + 0x28) = UART_64THS % 64;
    *at(BOARD_UART_BASE + 0x2C) = EIGHT_BITS | WITH_FIFO;
    *at(BOARD_UART_BASE + 0x30) = UART_ON;
}

#ifdef BOARD_NOC_BASE

#define CORE_NUMBER (*(const volatile uint32_t *)0xD0000000U)
#define MAIL_STATE (*(const volatile uint32_t *)0xD0000050U)
#define MAIL_OUT (*(volatile uint32_t *)0xD0000054U)
#define MAIL_IN (*(const volatile uint32_t *)0xD0000058U)
enum { MAIL_IS_IN = 1, MOST_MAILS = 8, CORE_1 = IS_RP2040 ? 1 << 16 : 1 << 24 };

uint32_t core_number(void)
{
    return CORE_NUMBER;
}

#ifdef BOARD_NOC_PROGRAM_1

/* Wake the other core, whose boot code sleeps between mails. */
static void wake_other_core(void)
{
#ifdef __riscv
    __asm volatile("slt x0, x0, x1"); /* h3.unblock */
#else
    __asm volatile("sev");
#endif
}

static uint32_t mail(uint32_t word)
{
    MAIL_OUT = word;
    wake_other_core();
    while ((MAIL_STATE & MAIL_IS_IN) == 0) {
    }
    return MAIL_IN;
}

/* Start core 1. Its boot code expects six mails, the last three with vector table, stack and entry, and echoes each
 * mail. */
static void start_core_1(void)
{
    const uint32_t *const program = (const uint32_t *)BOARD_NOC_PROGRAM_1;
#ifdef __riscv
    const uint32_t entry = BOARD_NOC_PROGRAM_1, stack = 0; /* the program sets its own stack */
    (void)program;
#else
    const uint32_t entry = program[1], stack = program[0];
#endif
    const uint32_t mails[] = {0, 0, 1, BOARD_NOC_PROGRAM_1, stack, entry};
    *at(POWER_ON + 0x4) |= CORE_1; /* core 1 off and on again, whatever its state */
    await(POWER_ON + 0x4, CORE_1);
    *at(POWER_ON + 0x4) &= ~(uint32_t)CORE_1;
    for (uint32_t sent = 0; sent < sizeof mails / sizeof mails[0];) {
        for (uint32_t i = 0; i < MOST_MAILS && sent < 2; i++) {
            (void)MAIL_IN; /* discard earlier mails */
        }
        sent = mail(mails[sent]) == mails[sent] ? sent + 1 : 0;
    }
}

#endif
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
    start_clocks();
    start_timer();
    start_uart();
#ifdef BOARD_NOC_PROGRAM_1
    start_core_1();
#endif
}

uint32_t clock_now(void)
{
    return *at(BOARD_TIMER_BASE + 0x28);
}

bool hal_link_readable(void)
{
    return (*at(BOARD_UART_BASE + 0x18) & RECEIVE_EMPTY) == 0;
}

uint8_t hal_link_read(void)
{
    return (uint8_t)*at(BOARD_UART_BASE);
}

void hal_link_write(uint8_t byte)
{
    while ((*at(BOARD_UART_BASE + 0x18) & SEND_FULL) != 0) {
    }
    *at(BOARD_UART_BASE) = byte;
}

#ifdef __riscv
_Noreturn void core_restart(void)
{
    *at(POWER_ON + 0x8) = UINT32_MAX; /* reset all of the chip */
    *at(WATCHDOG) = RESTART;
    for (;;) {
    }
}
#endif

/* ---- for the boot code of the chip ---- */

#if BOARD_BOOT_BYTES == 256

/* Second stage of the RP2040's boot. The ROM copies 252 bytes into SRAM and runs them if their CRC-32 follows (data
 * sheet, section 2.8.1.3). The code maps flash into memory by the read command 03h, which every flash chip knows, at a
 * quarter of the system clock, and continues with the vector table behind it:
 *
 *     ldr r0, ssi; movs r1, #0; str r1, [r0, #8]         the interface off
 *     movs r1, #4; str r1, [r0, #0x14]                   a quarter of the clock
 *     ldr r1, format; str r1, [r0]                       words of 32 bits, read behind a command
 *     ldr r1, command; movs r2, #0xF4; str r1, [r0, r2]  03h and 24 bits of address
 *     movs r1, #0; str r1, [r0, #4]                      a word at a time
 *     movs r1, #1; str r1, [r0, #8]                      the interface on
 *     ldr r0, program; ldr r1, vtor; str r0, [r1]
 *     ldmia r0!, {r1, r2}; mov sp, r1; bx r2 */
__attribute__((section(".boot"), used)) static const uint32_t second_stage[64] = {
    0x21004809, 0x21046081, 0x49086141, 0x49086001, 0x508122F4, 0x60412100, 0x60812101, 0x49064805, 0xC8066008, 0x4710468D,
    0x18000000,        /* ssi */
    0x001F0300,        /* format */
    0x03000218,        /* command */
    0x10000100,        /* program */
    0xE000ED08,        /* vtor */
    [63] = 0xBF67AC2E, /* the CRC-32 */
};

#else

/* Image definition, which the RP2350 looks for in the first 4 KB (data sheet, section 5.9.5): the only block, for an
 * image for the Arm cores, secure, or for the RISC-V cores. */
#ifdef __riscv
#define IMAGE_TYPE 0x11010142U
#else
#define IMAGE_TYPE 0x10210142U
#endif

__attribute__((section(".image_definition"), used)) static const uint32_t image_definition[] = {
    0xFFFFDED3U, IMAGE_TYPE, 0x000001FFU, 0, 0xAB123579U,
};

#endif
