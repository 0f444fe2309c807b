/* How the flash is divided: the loader, two pages of state, two slots for images. */
#ifndef SLOTS_H
#define SLOTS_H

#include "flash_board.h"

enum {
    SLOTS = 2,
    NO_SLOT = 0xFF,
    PAGE_BYTES = BOARD_FLASH_PAGE_BYTES,
    STATE_OFFSET = BOARD_FLASH_LOADER_BYTES,
    STATE_PAGES = 2,
    SLOT_BYTES = BOARD_FLASH_SLOT_BYTES,
    SLOT_PAGES = SLOT_BYTES / PAGE_BYTES,
    /* The last bytes of the loader's area, written at the factory: the key that images must be signed with. */
    KEY_BYTES = 64,
    KEY_OFFSET = BOARD_FLASH_LOADER_BYTES - KEY_BYTES,
};

static inline uint32_t slot_offset(uint32_t slot)
{
    return STATE_OFFSET + STATE_PAGES * PAGE_BYTES + slot * SLOT_BYTES;
}

#endif
