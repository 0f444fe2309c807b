/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Start of the board from flash: hardware manual, section 7.3. */
#include <string.h>

#include "flash_state.h"
#include "noc.h"

enum { CYCLES_BETWEEN_LOOKS = 16 };

static bool copy_is_proper(const struct flash *flash, const struct copy *copy)
{
    const uint64_t sram = flash->pe->mesh->figures.sram_bytes;
    return (copy->offset | copy->address | copy->bytes) % WORD == 0 &&
           (uint64_t)copy->offset + copy->bytes <= flash->figures.bytes && (uint64_t)copy->address + copy->bytes <= sram;
}

static bool take_list(struct flash *flash, uint32_t address)
{
    const struct pe *pe = flash->pe;
    const uint64_t room = pe->mesh->figures.sram_bytes;
    uint32_t count;
    if (address % WORD != 0 || address + (uint64_t)WORD > room) {
        return false;
    }
    memcpy(&count, pe->sram + address, WORD);
    if (count > MOST_COPIES || address + WORD + (uint64_t)count * sizeof(struct copy) > room) {
        return false;
    }
    memcpy(flash->copies, pe->sram + address + WORD, count * sizeof(struct copy));
    flash->copy_count = count;
    bool proper = true;
    for (uint32_t i = 0; i < count; i++) {
        proper = proper && copy_is_proper(flash, &flash->copies[i]);
    }
    return proper;
}

static uint64_t copy_to_sram(struct flash *flash, struct copy copy)
{
    memcpy(flash->pe->sram + copy.address, flash->memory + copy.offset, copy.bytes);
    shadow_written(flash->pe, copy.address, copy.bytes);
    blocks_forget(flash->pe, copy.address, copy.address + copy.bytes);
    return (uint64_t)copy.bytes / WORD * flash->figures.copy_cycles_per_word;
}

static void start_pe(struct mesh *mesh, struct pe *pe)
{
    if (pe->core == NULL) {
        pe_power_up(pe, mesh_add_image(mesh, 0, (struct code_range){0, 0}, (struct code_range){0, 0}));
    }
    dma_reset(pe);
    races_start(pe);
    pe->cycles = mesh->now;
    pe->event = false;
    pe->event_taken = mesh->now;
    pe_reset(pe);
}

/* Start an armed PE, as soon as the core does not run. */
static void start_armed(struct mesh *mesh, void *subject)
{
    struct pe *pe = subject;
    if (pe->state == PE_RUNNING) {
        events_post(mesh, mesh->now + CYCLES_BETWEEN_LOOKS, pe->number, start_armed, pe);
    } else {
        start_pe(mesh, pe);
    }
}

static void start_all(struct mesh *mesh, void *subject)
{
    const struct flash *flash = subject;
    start_pe(mesh, flash->pe);
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        if (flash->armed[i] && i != flash->pe->number) {
            start_armed(mesh, &mesh->pes[i]);
        }
    }
}

/* Wait until the root's core sleeps, because the copies overwrite the program. */
static void start_when_asleep(struct mesh *mesh, void *subject)
{
    struct flash *flash = subject;
    struct pe *pe = flash->pe;
    if (pe->state != PE_ASLEEP) {
        events_post(mesh, mesh->now + CYCLES_BETWEEN_LOOKS, pe->number, start_when_asleep, flash);
        return;
    }
    pe->asleep += mesh->now - pe->cycles;
    pe->state = PE_ABSENT;
    uint64_t cycles = 0;
    for (uint32_t i = 0; i < flash->copy_count; i++) {
        cycles += copy_to_sram(flash, flash->copies[i]);
    }
    events_post(mesh, mesh->now + cycles, pe->number, start_all, flash);
}

void boot_start(struct flash *flash, uint32_t address)
{
    struct mesh *mesh = flash->pe->mesh;
    if (!take_list(flash, address)) {
        flash_fail(flash, ERROR_LIST);
        return;
    }
    events_post(mesh, mesh->now + CYCLES_BETWEEN_LOOKS, flash->pe->number, start_when_asleep, flash);
}

void boot_arm(struct flash *flash, uint32_t number)
{
    if (number >= flash->pe->mesh->pe_count || !noc_pe_exists(flash->pe->mesh, number)) {
        flash_fail(flash, ERROR_PE);
        return;
    }
    flash->armed[number] = true;
}
