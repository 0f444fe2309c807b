/* SPDX-License-Identifier: Apache-2.0 */
/* Choice of the image to start. A new image is first on trial, then replaces the old one or is given up. */
#ifndef UPDATE_H
#define UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"

enum update_status {
    UPDATE_DONE = 0,
    UPDATE_NO_PLACE = 64,    /* address: the bytes of a slot */
    UPDATE_SLOT_IN_USE,      /* address: the slot */
    UPDATE_NOT_ERASED,       /* address: the first byte's offset in the slot */
    UPDATE_FLASH_FAILED,
    UPDATE_OTHER_IMAGE,
    UPDATE_OLDER,
    UPDATE_OTHERWISE, /* the board has another provision record, for good */
    UPDATE_NO_RECORD,
    UPDATE_COUNTER_FULL,
    UPDATE_IMAGE_REFUSED = 80, /* + the verdict */
    UPDATE_STATUSES = UPDATE_IMAGE_REFUSED + IMAGE_VERDICTS,
};

/* Make a confirmed image on trial the active image, and raise the board's security counter to the counter of the
 * image. Call first at every start. */
void update_settle(void);

/* Choose the slot to start; NO_SLOT if there is none. Records and then starts a trial under the watchdog. Gives up an
 * image that was tried and not confirmed. */
uint32_t update_choose(struct image *image);

/* Prepare a slot for writing. Refuses the active slot. */
enum update_status update_open(uint32_t slot);

/* Put the image in a slot on trial, if it is good, has this digest, and is not older than the active one unless
 * `may_be_older`. */
enum update_status update_try(uint32_t slot, const uint8_t *digest, bool may_be_older);

/* End the trial. */
enum update_status update_abandon(void);

#endif
