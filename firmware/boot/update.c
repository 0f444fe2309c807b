/* SPDX-License-Identifier: Apache-2.0 */
#include "update.h"

#include "counter.h"
#include "flash.h"
#include "slots.h"
#include "state.h"
#include "string.h"

static enum update_status write(const struct boot_state *state)
{
    return state_write(state) ? UPDATE_DONE : UPDATE_FLASH_FAILED;
}

void update_settle(void)
{
    struct boot_state state = state_read();
    struct image image;
    if (!state.confirmed || state.trial >= SLOTS || image_check(state.trial, &image) != IMAGE_GOOD) {
        return;
    }
    if (counter_raise(image.counter)) { /* first: an older counter must not start again, even if power fails here */
        state.active = state.trial;
        state.trial = NO_SLOT;
        state.tried = false;
        (void)state_write(&state);
    }
}

/* Record the trial before it begins: if the firmware never comes back, the next start finds `tried` set. */
static bool begin_trial(struct boot_state *state, struct image *image)
{
    if (image_check(state->trial, image) != IMAGE_GOOD) {
        return false;
    }
    state->tried = true;
    if (!state_write(state)) {
        return false;
    }
    flash_begin_trial(state_confirmation());
    return true;
}

uint32_t update_choose(struct image *image)
{
    struct boot_state state = state_read();
    if (state.trial < SLOTS && !state.tried && begin_trial(&state, image)) {
        return state.trial;
    }
    if (state.trial != NO_SLOT) {
        state.trial = NO_SLOT;
        state.tried = false;
        state_write(&state);
    }
    return state.active < SLOTS && image_check(state.active, image) == IMAGE_GOOD ? state.active : (uint32_t)NO_SLOT;
}

enum update_status update_abandon(void)
{
    struct boot_state state = state_read();
    if (state.trial == NO_SLOT) {
        return UPDATE_DONE;
    }
    state.trial = NO_SLOT;
    state.tried = false;
    return write(&state);
}

enum update_status update_open(uint32_t slot)
{
    const struct boot_state state = state_read();
    if (slot >= SLOTS) {
        return UPDATE_NO_PLACE;
    }
    if (slot == state.active) {
        return UPDATE_SLOT_IN_USE;
    }
    return slot == state.trial ? update_abandon() : UPDATE_DONE;
}

static bool goes_back(const struct boot_state *state, const struct image *image)
{
    struct image active;
    return state->active < SLOTS && image_check(state->active, &active) == IMAGE_GOOD && image_is_older(image, &active);
}

enum update_status update_try(uint32_t slot, const uint8_t *digest, bool may_be_older)
{
    struct boot_state state = state_read();
    struct image image;
    if (slot >= SLOTS) {
        return UPDATE_NO_PLACE;
    }
    if (slot == state.active) {
        return UPDATE_SLOT_IN_USE;
    }
    const enum image_verdict verdict = image_check(slot, &image);
    if (verdict != IMAGE_GOOD) {
        return (enum update_status)(UPDATE_IMAGE_REFUSED + (uint32_t)verdict);
    }
    if (memcmp(digest, image.digest, DIGEST_BYTES) != 0) {
        return UPDATE_OTHER_IMAGE;
    }
    if (!may_be_older && goes_back(&state, &image)) {
        return UPDATE_OLDER;
    }
    if (!counter_can_reach(image.counter)) {
        return UPDATE_COUNTER_FULL;
    }
    state.trial = (uint8_t)slot;
    state.tried = false;
    return write(&state);
}
