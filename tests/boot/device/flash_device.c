/* The loader's code on a flash in this machine's memory, with a loss of power at any step. */
#include <setjmp.h>
#include <string.h>

#include "bytes.h"
#include "flash.h"
#include "hal.h"
#include "requests.h"
#include "slots.h"

enum { FLASH_BYTES = BOARD_FLASH_LOADER_BYTES + STATE_PAGES * PAGE_BYTES + SLOTS * SLOT_BYTES };
enum { POWER_CUT = -1, NO_SUCH_REQUEST = -2 };

/* Interface for the tests. */
uint8_t *device_flash(void);
uint32_t device_flash_bytes(void);
void device_cut_power(uint32_t operation, uint32_t seed);
uint32_t device_operations(void);
int32_t device_request(uint32_t kind, const uint8_t *arguments, uint32_t size, uint8_t *payload, uint32_t *payload_size);
int32_t device_start(uint8_t *digest);
int32_t device_check(uint32_t slot);
int32_t device_confirm(void);

static _Alignas(16) uint8_t memory[FLASH_BYTES];
static jmp_buf power;
static uint32_t operations, cut_at, chance;
static uint32_t on_trial; /* flash offset of the confirmation; 0: no trial */

static uint32_t random_bits(void)
{
    chance ^= chance << 13;
    chance ^= chance >> 17;
    chance ^= chance << 5;
    return chance;
}

static uint8_t mixed(uint8_t old, uint8_t wanted, uint32_t kind)
{
    const uint8_t left = kind == 0 ? 0 : kind == 1 ? 0xFF : (uint8_t)random_bits();
    return (uint8_t)((old & left) | (wanted & ~left));
}

/* Change bytes of the flash in one operation. A loss of power changes only some bits and leaves by longjmp(). */
static void change(uint32_t offset, const uint8_t *wanted, uint32_t bytes)
{
    const bool cut = ++operations == cut_at;
    const uint32_t kind = cut ? random_bits() % 4 : 0;
    for (uint32_t i = 0; i < bytes; i++) {
        memory[offset + i] = cut ? mixed(memory[offset + i], wanted[i], kind) : wanted[i];
    }
    if (cut) {
        longjmp(power, 1);
    }
}

const uint8_t *flash_at(uint32_t offset)
{
    return memory + offset;
}

bool flash_erase(uint32_t offset)
{
    static uint8_t erased[PAGE_BYTES];
    memset(erased, 0xFF, sizeof erased);
    if (offset % PAGE_BYTES != 0 || offset < BOARD_FLASH_LOADER_BYTES || offset >= FLASH_BYTES) {
        return false;
    }
    change(offset, erased, PAGE_BYTES);
    return true;
}

bool flash_program(uint32_t offset, const uint8_t *data, uint32_t bytes)
{
    if (offset < ONCE_OFFSET) {
        return false;
    }
    for (uint32_t at = 0; at < bytes; at += 4) {
        if (memcmp(memory + offset + at, data + at, 4) == 0) {
            continue;
        }
        for (uint32_t i = at; i < at + 4; i++) {
            if ((data[i] & ~memory[offset + i]) != 0) {
                return false;
            }
        }
        change(offset + at, data + at, 4);
    }
    return true;
}

enum flash_cause flash_cause(void)
{
    return STARTED_BY_POWER;
}

void flash_begin_trial(uint32_t offset)
{
    on_trial = offset;
}

uint8_t *device_flash(void)
{
    return memory;
}

uint32_t device_flash_bytes(void)
{
    return FLASH_BYTES;
}

void device_cut_power(uint32_t operation, uint32_t seed)
{
    operations = 0;
    cut_at = operation;
    chance = seed * 2654435761U + 1;
}

uint32_t device_operations(void)
{
    return operations;
}

/* Returns the status. Fills in the payload. */
int32_t device_request(uint32_t kind, const uint8_t *arguments, uint32_t size, uint8_t *payload, uint32_t *payload_size)
{
    if (kind - REQUEST_FIRST_KIND >= REQUEST_KINDS) {
        return NO_SUCH_REQUEST;
    }
    if (setjmp(power) != 0) {
        return POWER_CUT;
    }
    const struct answer answer = request_kinds[kind - REQUEST_FIRST_KIND].handler(arguments, size, payload);
    *payload_size = answer.size;
    return (int32_t)answer.status;
}

/* Start by power or RESTART: the chosen slot, and the digest of its image. */
int32_t device_start(uint8_t *digest)
{
    struct image image;
    if (setjmp(power) != 0) {
        return POWER_CUT;
    }
    on_trial = 0;
    update_settle();
    const uint32_t slot = update_choose(&image);
    memcpy(digest, image.digest, DIGEST_BYTES);
    return (int32_t)slot;
}

/* Confirm, as firmware on trial does. Returns whether it was on trial. */
int32_t device_confirm(void)
{
    uint8_t confirmed[4];
    put32(confirmed, HAL_CONFIRMED);
    if (on_trial == 0) {
        return 0;
    }
    if (setjmp(power) != 0) {
        return POWER_CUT;
    }
    const bool done = flash_program(on_trial, confirmed, sizeof confirmed);
    on_trial = 0;
    return done;
}

int32_t device_check(uint32_t slot)
{
    struct image image;
    return (int32_t)image_check(slot, &image);
}
