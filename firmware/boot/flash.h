/* SPDX-License-Identifier: Apache-2.0 */
/* The root PE's flash and boot controller: boards/pe-mesh.md, section 7. */
#ifndef FLASH_H
#define FLASH_H

#include <stdbool.h>
#include <stdint.h>

enum flash_cause { STARTED_BY_POWER, STARTED_BY_HOST, STARTED_BY_RESTART, STARTED_BY_WATCHDOG };

/* From here on in the flash, as the core sees it. */
const uint8_t *flash_at(uint32_t offset);

/* Erase a page. False if the flash refuses. */
bool flash_erase(uint32_t offset);

/* Program whole words. Those that are there already are left alone. False if one of them is not erased. */
bool flash_program(uint32_t offset, const uint8_t *data, uint32_t bytes);

enum flash_cause flash_cause(void);

/* Start the board again. */
_Noreturn void flash_restart(void);

/* What starts next is on trial: it programs the word at this offset, or the watchdog restarts the board. */
void flash_begin_trial(uint32_t offset);

/* A copy from the flash into the root PE's SRAM. */
struct flash_copy {
    uint32_t offset;
    uint32_t address;
    uint32_t bytes;
};

enum { FLASH_MOST_COPIES = 64 };

struct flash_copies {
    uint32_t count;
    struct flash_copy copies[FLASH_MOST_COPIES];
};

/* Have a PE started by flash_start(). */
void flash_arm(uint32_t pe);

/* Make the copies and start this PE, and all that are armed, from their vector tables. */
_Noreturn void flash_start(const struct flash_copies *copies);

#endif
