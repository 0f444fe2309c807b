/* SPDX-License-Identifier: Apache-2.0 */
#include "flash.h"

#include "bytes.h"
#include "core_events.h"
#include "flash_board.h"
#include "hal.h"
#include "line.h"

struct flash_registers {
    volatile uint32_t erase;
    volatile uint32_t address;
    volatile uint32_t data;
    const volatile uint32_t status;
    volatile uint32_t error; /* any write clears it */
    const volatile uint32_t cause;
    volatile uint32_t arm;
    const struct flash_copies *volatile start;
    volatile uint32_t restart;
    volatile uint32_t watchdog;
};

enum { STATUS_BUSY = 1, STATUS_ERROR = 2, WORD = 4 };

/* Time for the firmware to start on all PEs, and for the host's HELLO, which the host repeats for 10 s at most. */
#define TRIAL_CYCLES (12U * BOARD_CLOCK_HZ)
_Static_assert(TRIAL_CYCLES / BOARD_CLOCK_HZ == 12, "the watchdog counts that far");

#define FLASH ((struct flash_registers *)BOARD_FLASH_BASE)

const uint8_t *flash_at(uint32_t offset)
{
    return (const uint8_t *)(BOARD_FLASH_WINDOW + offset);
}

static bool await_end(void)
{
    while ((FLASH->status & STATUS_BUSY) != 0) {
        line_take();
        hal_wait();
    }
    const bool done = (FLASH->status & STATUS_ERROR) == 0;
    FLASH->error = 0;
    return done;
}

bool flash_erase(uint32_t offset)
{
    FLASH->erase = offset;
    return await_end();
}

bool flash_program(uint32_t offset, const uint8_t *data, uint32_t bytes)
{
    for (uint32_t at = 0; at < bytes; at += WORD) {
        if (get32(flash_at(offset + at)) == get32(data + at)) {
            continue;
        }
        FLASH->address = offset + at;
        FLASH->data = get32(data + at);
        if (!await_end()) {
            return false;
        }
    }
    return true;
}

enum flash_cause flash_cause(void)
{
    return (enum flash_cause)FLASH->cause;
}

_Noreturn void flash_restart(void)
{
    FLASH->restart = 1;
    for (;;) {
        hal_wait();
    }
}

void flash_begin_trial(uint32_t offset)
{
    FLASH->address = offset;
    FLASH->watchdog = TRIAL_CYCLES;
}

void flash_arm(uint32_t pe)
{
    FLASH->arm = pe;
}

_Noreturn void flash_start(const struct flash_copies *copies)
{
    core_order_memory();
    FLASH->start = copies;
    for (;;) {
        hal_wait();
    }
}
