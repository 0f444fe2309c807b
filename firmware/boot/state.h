/* SPDX-License-Identifier: Apache-2.0 */
/* Which image the board starts: a journal in two pages of the flash. A write that is cut short leaves the state as it
 * was before. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>

struct boot_state {
    uint8_t active; /* the slot that is known to work, or NO_SLOT */
    uint8_t trial;  /* a newer one on trial, or NO_SLOT */
    bool tried;     /* the one on trial has been started */
    bool confirmed; /* and its firmware has confirmed itself since; written by the firmware alone */
};

struct boot_state state_read(void);

/* Where the firmware on trial confirms itself: the offset of a word in the flash. */
uint32_t state_confirmation(void);

/* Write all but the confirmation, which there is none of then. False if the flash refuses. */
bool state_write(const struct boot_state *state);

#endif
