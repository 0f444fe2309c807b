/* SPDX-License-Identifier: Apache-2.0 */
/* Journal of the choice of image, in two pages of the flash. A truncated write leaves the earlier state. */
#ifndef STATE_H
#define STATE_H

#include <stdbool.h>
#include <stdint.h>

struct boot_state {
    uint8_t active; /* slot with a confirmed image, or NO_SLOT */
    uint8_t trial;  /* slot with a newer image on trial, or NO_SLOT */
    bool tried;     /* the image on trial has been started */
    bool confirmed; /* and has confirmed itself since; only the firmware writes this */
};

struct boot_state state_read(void);

/* Offset of the flash word by which the firmware on trial confirms itself. */
uint32_t state_confirmation(void);

/* Write a new state, not confirmed. False if the flash refuses. */
bool state_write(const struct boot_state *state);

#endif
