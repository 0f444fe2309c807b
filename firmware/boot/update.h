/* SPDX-License-Identifier: Apache-2.0 */
/* Which image starts, and how a new one takes the place of the old: on trial first, then for good or not at all. */
#ifndef UPDATE_H
#define UPDATE_H

#include <stdbool.h>
#include <stdint.h>

#include "image.h"

enum update_status {
    UPDATE_DONE = 0,
    UPDATE_NO_PLACE = 64,    /* address: how many bytes a slot has */
    UPDATE_SLOT_IN_USE,      /* address: the slot */
    UPDATE_NOT_ERASED,       /* address: the first byte's offset in the slot */
    UPDATE_FLASH_FAILED,
    UPDATE_OTHER_IMAGE,
    UPDATE_OLDER,
    UPDATE_OTHERWISE, /* the board has been told something else, for good */
    UPDATE_NO_RECORD,
    UPDATE_COUNTER_FULL,
    UPDATE_IMAGE_REFUSED = 80, /* + the verdict */
    UPDATE_STATUSES = UPDATE_IMAGE_REFUSED + IMAGE_VERDICTS,
};

/* Whenever the board starts, first of all: the image that was on trial and has confirmed itself becomes the active one,
 * and the board's security counter rises to its. */
void update_settle(void);

/* The slot to start now, and its image; NO_SLOT if there is none. One on trial is started under the watchdog, and that
 * it has been tried is written down before; one that was tried and has not confirmed itself is given up. */
uint32_t update_choose(struct image *image);

/* Make a slot ready to be written: it must not be the active one. */
enum update_status update_open(uint32_t slot);

/* Put the image in a slot on trial, if it is good, has this digest, and is not older than the active one. */
enum update_status update_try(uint32_t slot, const uint8_t *digest, bool may_be_older);

/* No image is on trial any more. */
enum update_status update_abandon(void);

#endif
