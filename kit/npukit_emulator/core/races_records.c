/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Records of deeds, by number. A record without references in memory or in work under way is reused: no later access
 * can race with the deed. */
#include "need.h"
#include "network.h"
#include "races.h"

enum { OF_A_BLOCK = 1 << 12, MANY = 1 << 15 };

/* The next time, or the next number of a deed. */
uint32_t races_next(uint32_t count)
{
    if (count + 1 == DEED) {
        give_up("the run is too long to look for races");
    }
    return count + 1;
}

struct deed *races_of(const struct mesh *mesh, uint32_t deed)
{
    const uint32_t number = deed & ~DEED;
    return &mesh->deeds->blocks[number / OF_A_BLOCK][number % OF_A_BLOCK];
}

static uint32_t new_number(struct deeds *deeds)
{
    const uint32_t number = deeds->count = races_next(deeds->count), block = number / OF_A_BLOCK;
    if (block == deeds->block_count) {
        deeds->blocks = grow(deeds->blocks, &deeds->block_room, block + 1, sizeof deeds->blocks[0]);
        deeds->blocks[deeds->block_count++] = needed(calloc(OF_A_BLOCK, sizeof(struct deed)));
    }
    return number;
}

uint32_t races_add(struct mesh *mesh, struct deed deed)
{
    struct deeds *deeds = mesh->deeds;
    const uint32_t number = deeds->unused != 0 ? deeds->unused : new_number(deeds);
    struct deed *record = races_of(mesh, number);
    deeds->unused = deeds->unused != 0 ? record->count : 0;
    deeds->used++;
    *record = deed;
    return number | DEED;
}

/* ---- marking of referenced records ---- */

static void mark_plain(const struct mesh *mesh, uint32_t deed)
{
    struct deed *record = races_of(mesh, deed);
    const bool fetches = record->kind == DEED_FETCH && (record->kept & MARKED) == 0;
    record->kept |= MARKED;
    for (uint32_t each = fetches ? record->landings : 0; each != 0; each = races_of(mesh, each)->landings) {
        races_of(mesh, each)->kept |= MARKED;
    }
}

/* Mark the contents of a cell: a core's time, a deed, or several. */
static void mark(const struct mesh *mesh, uint32_t deed)
{
    while ((deed & DEED) != 0) {
        struct deed *record = races_of(mesh, deed);
        if (record->kind != DEED_SET) {
            mark_plain(mesh, deed);
            return;
        }
        if ((record->kept & MARKED) != 0) {
            return;
        }
        record->kept |= MARKED;
        mark_plain(mesh, record->count);
        deed = record->address;
    }
}

static void mark_cells(const struct mesh *mesh, struct cells **pages, uint64_t bytes)
{
    uint32_t stored = 0, read = 0;
    for (uint64_t page = 0; page <= bytes / CELL_PAGE; page++) {
        for (uint32_t at = 0; pages[page] != NULL && at < CELL_PAGE; at++) {
            if (pages[page]->stored[at] != stored) {
                stored = pages[page]->stored[at];
                mark(mesh, stored);
            }
            if (pages[page]->read[at] != read) {
                read = pages[page]->read[at];
                mark(mesh, read);
            }
        }
    }
}

static void mark_all(const struct mesh *mesh)
{
    const struct figures *figures = &mesh->figures;
    for (uint32_t number = 1; number <= mesh->deeds->count; number++) {
        if ((races_of(mesh, number)->kept & HELD) != 0) {
            mark_plain(mesh, number);
        }
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        mark_cells(mesh, mesh->pes[i].races->cells, figures->sram_bytes);
        for (uint32_t device = 0; device < DEVICES_PER_PE; device++) {
            mark(mesh, mesh->pes[i].races->works[device]);
        }
    }
    for (uint32_t chip = 0; chip < figures->chip_columns * figures->chip_rows; chip++) {
        mark_cells(mesh, mesh->deeds->dram[chip], figures->dram_bytes);
    }
}

/* ---- collection of the others ---- */

/* Drop deeds without references from a list of deeds whose end is awaited. */
static void drop_unmarked(const struct mesh *mesh, struct deed_list *list)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if ((races_of(mesh, list->deeds[i])->kept & MARKED) != 0) {
            list->deeds[kept++] = list->deeds[i];
        }
    }
    list->count = kept;
}

static void drop_landings(const struct mesh *mesh, struct counted *counted)
{
    for (size_t i = 0; i < counted->count; i++) {
        uint32_t *landing = &counted->waiting[i].landing;
        *landing = *landing != 0 && (races_of(mesh, *landing)->kept & MARKED) != 0 ? *landing : 0;
    }
}

static void drop_of_pe(const struct mesh *mesh, struct races *races)
{
    drop_unmarked(mesh, &races->landings);
    drop_unmarked(mesh, &races->sent);
    drop_unmarked(mesh, &races->unseen);
    for (uint32_t flag = 0; flag < mesh->figures.flags; flag++) {
        drop_landings(mesh, &races->flags[flag]);
    }
}

static void collect(struct mesh *mesh)
{
    struct deeds *deeds = mesh->deeds;
    mark_all(mesh);
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        drop_of_pe(mesh, mesh->pes[i].races);
    }
    deeds->used = deeds->unused = 0;
    for (uint32_t number = deeds->count; number > 0; number--) {
        struct deed *record = races_of(mesh, number);
        if ((record->kept & MARKED) == 0) {
            *record = (struct deed){.kind = DEED_NONE, .count = deeds->unused};
            deeds->unused = number;
        } else {
            record->kept &= HELD;
            deeds->used++;
        }
    }
    deeds->enough = deeds->used < MANY ? 2 * MANY : 2 * deeds->used;
}

/* Record a deed. Unreferenced records may be collected here, so no other deed may be half recorded. */
uint32_t races_deed(struct mesh *mesh, struct deed deed)
{
    if (mesh->deeds->used >= mesh->deeds->enough) {
        collect(mesh);
    }
    return races_add(mesh, deed);
}

void races_free_records(struct mesh *mesh)
{
    struct deeds *deeds = mesh->deeds;
    for (size_t block = 0; block < deeds->block_count; block++) {
        free(deeds->blocks[block]);
    }
    free(deeds->blocks);
}

void races_list(struct deed_list *list, uint32_t deed)
{
    list->deeds = grow(list->deeds, &list->room, list->count + 1, sizeof deed);
    list->deeds[list->count++] = deed;
}
