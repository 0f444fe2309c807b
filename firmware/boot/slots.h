/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of the flash: the loader, an area that is never erased, two pages of state, two slots for images. */
#ifndef SLOTS_H
#define SLOTS_H

#include "flash_board.h"
#include "provision.h"

enum {
    SLOTS = 2,
    NO_SLOT = 0xFF,
    PAGE_BYTES = BOARD_FLASH_PAGE_BYTES,
    STATE_OFFSET = BOARD_FLASH_LOADER_BYTES,
    STATE_PAGES = 2,
    SLOT_BYTES = BOARD_FLASH_SLOT_BYTES,
    SLOT_PAGES = SLOT_BYTES / PAGE_BYTES,
    /* The last bytes of the loader's area: the provision record's copies, then the security counter. */
    ONCE_OFFSET = BOARD_FLASH_LOADER_BYTES - BOARD_FLASH_ONCE_BYTES,
    COUNTER_OFFSET = ONCE_OFFSET + PROVISION_COPIES * PROVISION_RECORD_BYTES,
    COUNTER_BYTES = BOARD_FLASH_LOADER_BYTES - COUNTER_OFFSET,
};

static inline uint32_t slot_offset(uint32_t slot)
{
    return STATE_OFFSET + STATE_PAGES * PAGE_BYTES + slot * SLOT_BYTES;
}

#endif
