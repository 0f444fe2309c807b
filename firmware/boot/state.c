/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <stddef.h>

#include "bytes.h"
#include "crc32.h"
#include "flash.h"
#include "hal.h"
#include "slots.h"

/* Records are appended. The valid record with the highest number counts. */
enum { MAGIC = 0x5453504E, STATE_BYTES = 16, CONFIRMATION_AT = STATE_BYTES, RECORD_BYTES = 32 };
enum { RECORDS = PAGE_BYTES / RECORD_BYTES, ERASED = 0xFF };

struct record {
    uint32_t page;
    uint32_t index;
    uint32_t number;
};

static uint32_t record_offset(uint32_t page, uint32_t index)
{
    return STATE_OFFSET + page * PAGE_BYTES + index * RECORD_BYTES;
}

static bool valid(const uint8_t *record)
{
    return get32(record) == MAGIC && crc32_update(0, record, STATE_BYTES - 4) == get32(record + STATE_BYTES - 4);
}

static bool erased(const uint8_t *at, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (at[i] != ERASED) {
            return false;
        }
    }
    return true;
}

static bool find_last(struct record *last)
{
    bool found = false;
    for (uint32_t page = 0; page < STATE_PAGES; page++) {
        for (uint32_t index = 0; index < RECORDS; index++) {
            const uint8_t *record = flash_at(record_offset(page, index));
            if (valid(record) && (!found || get32(record + 4) > last->number)) {
                *last = (struct record){page, index, get32(record + 4)};
                found = true;
            }
        }
    }
    return found;
}

struct boot_state state_read(void)
{
    struct record last;
    if (!find_last(&last)) {
        return (struct boot_state){NO_SLOT, NO_SLOT, false, false};
    }
    const uint8_t *record = flash_at(record_offset(last.page, last.index));
    const bool tried = record[10] != 0;
    return (struct boot_state){record[8], record[9], tried, tried && get32(record + CONFIRMATION_AT) == HAL_CONFIRMED};
}

uint32_t state_confirmation(void)
{
    struct record last = {0, 0, 0};
    (void)find_last(&last);
    return record_offset(last.page, last.index) + CONFIRMATION_AT;
}

/* Index of the first record of the page's erased end; RECORDS if the end is not erased. */
static uint32_t first_free(uint32_t page)
{
    uint32_t index = RECORDS;
    while (index > 0 && erased(flash_at(record_offset(page, index - 1)), RECORD_BYTES)) {
        index--;
    }
    return index;
}

/* Place of the next record: behind the last record, or in the other page, which is erased first. The page of the last
 * record stays: a valid record always exists. */
static bool find_room(const struct record *last, uint32_t *offset)
{
    const uint32_t index = first_free(last->page);
    if (index < RECORDS) {
        *offset = record_offset(last->page, index);
        return true;
    }
    const uint32_t other = 1 - last->page;
    *offset = record_offset(other, 0);
    return flash_erase(*offset);
}

bool state_write(const struct boot_state *state)
{
    struct record last = {1, 0, 0};
    uint32_t offset = record_offset(0, 0);
    const bool found = find_last(&last);
    if (found ? !find_room(&last, &offset) : !flash_erase(offset)) {
        return false;
    }
    uint8_t record[STATE_BYTES] = {0};
    put32(put32(record, MAGIC), last.number + 1);
    record[8] = state->active;
    record[9] = state->trial;
    record[10] = state->tried;
    put32(record + STATE_BYTES - 4, crc32_update(0, record, STATE_BYTES - 4));
    return flash_program(offset, record, STATE_BYTES);
}
