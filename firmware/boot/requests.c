/* SPDX-License-Identifier: Apache-2.0 */
#include "requests.h"

#include <stddef.h>

#include "bytes.h"
#include "counter.h"
#include "flash.h"
#include "flash_board.h"
#include "frame.h"
#include "slots.h"
#include "state.h"
#include "string.h"

enum { LOADER_VERSION = 2, REPLY_HEADER_BYTES = 16, MAY_BE_OLDER = 1 };
enum { MOST_DIGESTS = (FRAME_PACKET_BYTES - REPLY_HEADER_BYTES) / DIGEST_BYTES };

static struct answer finish(enum update_status status, uint32_t address)
{
    return (struct answer){(uint32_t)status, address, 0};
}

static struct answer done(uint32_t size)
{
    return (struct answer){REQUEST_DONE, 0, size};
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, uint32_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

static struct answer identify(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    static const char name[] = BOARD_NAME;
    const struct boot_state state = state_read();
    const uint8_t *key;
    const enum provision takes = provision_read(&key);
    (void)arguments, (void)size;
    uint8_t *at = put16(put16(payload, LOADER_VERSION), FRAME_PACKET_BYTES);
    at = put32(put32(put32(at, SLOT_BYTES), PAGE_BYTES), (uint32_t)flash_cause());
    *at++ = state.active;
    *at++ = state.trial;
    *at++ = state.tried;
    *at++ = (uint8_t)takes;
    at = put32(at, counter_read());
    memset(at, 0, PUBLIC_KEY_BYTES);
    at = key != 0 ? put_bytes(at, key, PUBLIC_KEY_BYTES) : at + PUBLIC_KEY_BYTES;
    *at++ = sizeof name - 1;
    at = put_bytes(at, name, sizeof name - 1);
    return done((uint32_t)(at - payload));
}

static struct answer describe_slot(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t slot = get32(arguments);
    struct image image;
    (void)size;
    if (slot >= SLOTS) {
        return finish(UPDATE_NO_PLACE, SLOT_BYTES);
    }
    uint8_t *at = put32(payload, (uint32_t)image_check(slot, &image));
    at = put_bytes(put32(at, image.bytes), image.version, sizeof image.version);
    put32(put_bytes(at, image.digest, DIGEST_BYTES), image.counter);
    return done(4 + 4 + sizeof image.version + DIGEST_BYTES + 4);
}

/* SHA-256 of each page: the host writes only pages that differ. */
static struct answer digest_pages(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t slot = get32(arguments), first = get32(arguments + 4);
    (void)size;
    if (slot >= SLOTS || first >= SLOT_PAGES) {
        return finish(UPDATE_NO_PLACE, SLOT_BYTES);
    }
    const uint32_t left = SLOT_PAGES - first;
    const uint32_t count = left < MOST_DIGESTS ? left : (uint32_t)MOST_DIGESTS;
    for (uint32_t i = 0; i < count; i++) {
        digest_of(flash_at(slot_offset(slot) + (first + i) * PAGE_BYTES), PAGE_BYTES, payload + i * DIGEST_BYTES);
    }
    return done(count * DIGEST_BYTES);
}

static struct answer erase_page(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t slot = get32(arguments), page = get32(arguments + 4);
    const enum update_status status = page < SLOT_PAGES ? update_open(slot) : UPDATE_NO_PLACE;
    (void)size, (void)payload;
    if (status != UPDATE_DONE) {
        return finish(status, status == UPDATE_NO_PLACE ? (uint32_t)SLOT_BYTES : slot);
    }
    return finish(flash_erase(slot_offset(slot) + page * PAGE_BYTES) ? UPDATE_DONE : UPDATE_FLASH_FAILED, page);
}

static struct answer write_slot(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t slot = get32(arguments), offset = get32(arguments + 4), bytes = size - 8;
    const bool inside = offset % 4 == 0 && offset <= SLOT_BYTES && bytes <= SLOT_BYTES - offset;
    const enum update_status status = inside ? update_open(slot) : UPDATE_NO_PLACE;
    (void)payload;
    if (status != UPDATE_DONE) {
        return finish(status, status == UPDATE_NO_PLACE ? (uint32_t)SLOT_BYTES : slot);
    }
    return finish(flash_program(slot_offset(slot) + offset, arguments + 8, bytes) ? UPDATE_DONE : UPDATE_NOT_ERASED,
                  offset);
}

static struct answer try_slot(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t slot = get32(arguments), options = get32(arguments + 4);
    (void)size, (void)payload;
    return finish(update_try(slot, arguments + 8, (options & MAY_BE_OLDER) != 0), slot);
}

static struct answer provision(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size, (void)payload;
    if (!provision_is_record(arguments)) {
        return finish(UPDATE_NO_RECORD, 0);
    }
    return finish(provision_write(arguments) ? UPDATE_DONE : UPDATE_OTHERWISE, 0);
}

static struct answer abandon(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)arguments, (void)size, (void)payload;
    return finish(update_abandon(), 0);
}

/* The server restarts the board after the reply. */
static struct answer boot(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)arguments, (void)size, (void)payload;
    return done(0);
}

/* Indexed by the kind of request, from REQUEST_FIRST_KIND on. */
const struct request_kind request_kinds[REQUEST_KINDS] = {
    {identify, 0, false},
    {describe_slot, 4, false},
    {digest_pages, 8, false},
    {erase_page, 8, false},
    {write_slot, 8, true},
    {try_slot, 8 + DIGEST_BYTES, false},
    {provision, PROVISION_RECORD_BYTES, false},
    {abandon, 0, false},
    {boot, 0, false},
};
