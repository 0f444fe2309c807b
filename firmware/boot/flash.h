/* SPDX-License-Identifier: Apache-2.0 */
/* Flash and boot controller of the root PE: boards/pe-mesh.md, section 7. */
#ifndef FLASH_H
#define FLASH_H

#include <stdbool.h>
#include <stdint.h>

enum flash_cause { STARTED_BY_POWER, STARTED_BY_HOST, STARTED_BY_RESTART, STARTED_BY_WATCHDOG };

/* Address of a flash offset in the core's address space. */
const uint8_t *flash_at(uint32_t offset);

/* Erase a page. False if the flash refuses. */
bool flash_erase(uint32_t offset);

/* Program whole words. Skips words that already have their value. False if another word is not erased. */
bool flash_program(uint32_t offset, const uint8_t *data, uint32_t bytes);

enum flash_cause flash_cause(void);

/* Restart the board. */
_Noreturn void flash_restart(void);

/* Put the next firmware on trial: the watchdog restarts the board unless the firmware programs the word at this
 * offset. */
void flash_begin_trial(uint32_t offset);

/* Copy from the flash into the root PE's SRAM. */
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

/* Mark a PE to be started by flash_start(). */
void flash_arm(uint32_t pe);

/* Make the copies, then start this PE and all armed PEs from their vector tables. */
_Noreturn void flash_start(const struct flash_copies *copies);

#endif
