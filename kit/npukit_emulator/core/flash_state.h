/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The flash and its controller, in two halves: flash.c changes the contents, boot.c starts the board from the flash. */
#ifndef FLASH_STATE_H
#define FLASH_STATE_H

#include "mesh.h"

enum { WORD = 4, MOST_COPIES = 64 };
enum flash_error { ERROR_BUSY = 1, ERROR_PLACE, ERROR_NOT_ERASED, ERROR_PROTECTED, ERROR_PE, ERROR_LIST };

struct copy {
    uint32_t offset, address, bytes;
};

struct flash {
    struct flash_figures figures;
    struct pe *pe;
    uint8_t *memory;
    uint32_t cause;
    uint32_t address, error;
    bool busy, erases;
    uint32_t place, value; /* of the operation under way */
    uint64_t operations, cut_at;
    uint64_t watchdog; /* cycle at which the watchdog restarts the board */
    uint32_t chance;
    bool *armed;
    struct copy copies[MOST_COPIES];
    uint32_t copy_count;
};

void flash_fail(struct flash *flash, enum flash_error error);

/* Arm a PE for the next start. A start reads the list at `address` in the root PE's SRAM. */
void boot_arm(struct flash *flash, uint32_t number);
void boot_start(struct flash *flash, uint32_t address);

#endif
