/* SPDX-License-Identifier: Apache-2.0 */
#include "counter.h"

#include "bytes.h"
#include "flash.h"
#include "slots.h"

/* Entries in flash that is never erased: the value and its complement, twice. A half cut short by a loss of power keeps
 * ones in place of zeros and is invalid; a flipped bit leaves the other half valid. The largest valid value counts. */
enum { HALF_BYTES = 8, ENTRY_BYTES = 2 * HALF_BYTES, ENTRIES = COUNTER_BYTES / ENTRY_BYTES };
enum { ERASED_WORD = 0xFFFFFFFF };

static const uint8_t *half_at(uint32_t half)
{
    return flash_at(COUNTER_OFFSET + half * HALF_BYTES);
}

uint32_t counter_read(void)
{
    uint32_t most = 0;
    for (uint32_t half = 0; half < 2 * ENTRIES; half++) {
        const uint32_t value = get32(half_at(half));
        const bool counts = get32(half_at(half) + 4) == ~value;
        most = counts && value > most ? value : most;
    }
    return most;
}

/* The first entry without any write; ENTRIES if there is none. */
static uint32_t first_free(void)
{
    uint32_t free = ENTRIES;
    for (uint32_t entry = ENTRIES; entry-- > 0;) {
        for (uint32_t at = 0; at < ENTRY_BYTES; at += 4) {
            if (get32(half_at(2 * entry) + at) != (uint32_t)ERASED_WORD) {
                return free;
            }
        }
        free = entry;
    }
    return free;
}

bool counter_can_reach(uint32_t value)
{
    return value <= counter_read() || first_free() < ENTRIES;
}

bool counter_raise(uint32_t value)
{
    if (value <= counter_read()) {
        return true;
    }
    uint8_t entry[ENTRY_BYTES];
    put32(put32(put32(put32(entry, value), ~value), value), ~value);
    const uint32_t place = first_free();
    return place < ENTRIES && flash_program(COUNTER_OFFSET + place * ENTRY_BYTES, entry, ENTRY_BYTES);
}
