/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Races in memory: each byte's last store and the loads since, and whether the next access is ordered after them. */
#include "races.h"

#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "network.h"

static bool has_landed(const struct mesh *mesh, const struct deed *landing, const struct view *view)
{
    if (landing->at_once && clocks_engine(view, landing->pe, mesh->pe_count) >= landing->count) {
        return true;
    }
    return landing->seen != 0 && clocks_core(view, landing->observer) >= landing->seen;
}

/* Whether a source has been read: the core of the DMA engine has seen the end, or the message has landed at all
 * destinations. */
static bool has_left(const struct mesh *mesh, const struct deed *fetch, const struct view *view)
{
    if (clocks_engine(view, fetch->pe, mesh->pe_count) >= fetch->count) {
        return true;
    }
    bool landed = fetch->under_way == 0;
    for (uint32_t each = fetch->landings; landed && each != 0; each = races_of(mesh, each)->landings) {
        landed = has_landed(mesh, races_of(mesh, each), view);
    }
    return landed;
}

/* Whether the holder of a view comes after a whole deed. */
static bool is_over(const struct mesh *mesh, const struct deed *deed, const struct view *view)
{
    switch ((enum deed_kind)deed->kind) {
    case DEED_FETCH:
        return has_left(mesh, deed, view);
    case DEED_LANDING:
        return has_landed(mesh, deed, view);
    case DEED_WORK:
        return deed->seen != 0 && clocks_core(view, deed->pe) >= deed->seen;
    default:
        return clocks_core(view, deed->pe) >= deed->count;
    }
}

/* Whether hardware orders two deeds: work of the same accelerator, or messages that cannot overtake each other. */
static bool one_after_the_other(const struct deed *before, const struct deed *now)
{
    if (before->pe != now->pe || before->kind != now->kind) {
        return false;
    }
    if (now->kind == DEED_WORK) {
        return before->device == now->device;
    }
    return now->kind == DEED_LANDING && before->from == now->from && before->from != NOWHERE_AT &&
           before->observer == now->observer;
}

/* ---- an access ---- */

/* An access: the view and the deed of its author. The memory's own core has no deed. */
struct access {
    struct mesh *mesh;
    const struct view *view;
    uint32_t deed; /* 0: the memory's own core */
    uint32_t place, owner;
    bool stores;
    uint32_t ordered, ordered_reads; /* cell contents found ordered last */
    uint32_t read_before, read_now;  /* readers joined last by the deed, and the result */
};

static bool follows(const struct access *access, uint32_t before)
{
    if (before == 0 || before == access->deed) {
        return true;
    }
    if ((before & DEED) == 0) {
        return clocks_core(access->view, access->owner) >= before;
    }
    const struct deed *deed = races_of(access->mesh, before);
    return is_over(access->mesh, deed, access->view) ||
           (access->deed != 0 && one_after_the_other(deed, races_of(access->mesh, access->deed)));
}

/* The first reader without order to the access, or 0. */
static uint32_t unordered_reader(const struct access *access, uint32_t readers)
{
    while (readers != 0) {
        const struct deed *set = races_of(access->mesh, readers);
        const bool several = set->kind == DEED_SET;
        const uint32_t reader = several ? set->count : readers;
        if (!follows(access, reader)) {
            return reader;
        }
        readers = several ? set->address : 0;
    }
    return 0;
}

static uint32_t with_reader(const struct access *access, uint32_t before)
{
    uint32_t now = access->deed;
    for (uint32_t left = before; left != 0;) {
        const struct deed *set = races_of(access->mesh, left);
        const bool several = set->kind == DEED_SET;
        const uint32_t reader = several ? set->count : left;
        if (reader == access->deed) {
            return before;
        }
        left = several ? set->address : 0;
        if (!follows(access, reader)) {
            now = races_add(access->mesh, (struct deed){.kind = DEED_SET, .count = reader, .address = now});
        }
    }
    return now;
}

/* ---- faults ---- */

static struct race_side side_of(const struct mesh *mesh, uint32_t who, uint32_t pe, uint32_t pc, bool stores)
{
    if ((who & DEED) == 0) {
        return (struct race_side){DEED_CORE, pe, pc, 0, 0, stores};
    }
    const struct deed *deed = races_of(mesh, who);
    return (struct race_side){deed->kind, deed->pe, deed->address, deed->tag, deed->device, stores};
}

static bool is_core(const struct race_side *side)
{
    return side->kind == DEED_CORE || side->kind == DEED_WINDOW_LOAD || side->kind == DEED_WINDOW_STORE;
}

static void report(const struct access *access, uint32_t address, struct race_side before, struct race_side now)
{
    const struct race_side *guilty = is_core(&now) || !is_core(&before) ? &now : &before;
    struct pe *pe = &access->mesh->pes[guilty->pe];
    if (pe->fault_kind == FAULT_NONE) {
        pe->races->race = (struct race){access->place, address, {before, now}};
    }
    pe_fault_at(pe, FAULT_RACE, address, is_core(guilty) ? guilty->address : pe->pc);
}

/* ---- memory ---- */

static struct cells ***cells_of(const struct mesh *mesh, uint32_t place)
{
    return noc_is_dram(place) ? &mesh->deeds->dram[place - DRAM_OF_CHIP] : &mesh->pes[place].races->cells;
}

static struct cells *page_at(struct cells **pages, uint32_t at)
{
    struct cells **page = &pages[at / CELL_PAGE];
    *page = *page == NULL ? needed(calloc(1, sizeof **page)) : *page;
    return *page;
}

static struct view *polled_word(const struct races *races, uint32_t address)
{
    for (uint32_t i = 0; i < races->polled_count; i++) {
        const struct polled *polled = &races->polled[i];
        if (polled->from <= address && address < polled->to) {
            return &polled->words[(address - polled->from) / 4];
        }
    }
    return NULL;
}

/* Access a byte for a deed. False if there is a race. */
static bool touch(struct access *access, struct cells *cells, uint32_t at, uint32_t address)
{
    const uint32_t stored = cells->stored[at];
    const struct race_side now = side_of(access->mesh, access->deed, 0, 0, access->stores);
    if (stored != access->ordered && !follows(access, stored)) {
        report(access, address, side_of(access->mesh, stored, access->owner, cells->stored_at[at], true), now);
        return false;
    }
    access->ordered = stored;
    if (!access->stores) {
        if (cells->read[at] != access->read_before) {
            access->read_before = cells->read[at];
            access->read_now = with_reader(access, cells->read[at]);
        }
        cells->read[at] = access->read_now;
        return true;
    }
    if (!follows(access, cells->loaded[at])) {
        report(access, address, side_of(access->mesh, 0, access->owner, cells->loaded_at[at], false), now);
        return false;
    }
    const uint32_t reader = cells->read[at] == access->ordered_reads ? 0 : unordered_reader(access, cells->read[at]);
    if (reader != 0) {
        report(access, address, side_of(access->mesh, reader, 0, 0, false), now);
        return false;
    }
    access->ordered_reads = cells->read[at];
    cells->stored[at] = access->deed;
    cells->loaded[at] = cells->read[at] = 0;
    return true;
}

/* A read of a polled word adds the writer's view to the reader's. A write leaves the writer's view there. */
static void pass_on(struct mesh *mesh, struct view *word, struct view *view, bool stores)
{
    if (!stores && word->row != NULL) {
        clocks_learn(view, word, mesh->pe_count);
    } else if (stores) {
        clocks_let_go(word);
        *word = clocks_hold(*view);
    }
}

/* Load or store bytes of a PE's memory or of DRAM for a deed. */
void races_access(struct mesh *mesh, struct view *view, uint32_t deed, struct place place, uint32_t bytes, bool stores)
{
    const struct races *races = noc_is_dram(place.pe) ? NULL : mesh->pes[place.pe].races;
    const uint32_t start = races == NULL ? place.address : place_of(&mesh->pes[place.pe], place.address);
    struct access access = {mesh, view, deed, place.pe, place.pe, stores, 0, 0, NOWHERE_AT, 0};
    struct cells **pages = *cells_of(mesh, place.pe);
    for (uint32_t i = 0; i < bytes && mesh->faulted == NULL; i++) {
        struct view *word = races == NULL ? NULL : polled_word(races, place.address + i);
        if (word != NULL) {
            pass_on(mesh, word, view, stores);
        } else if (!touch(&access, page_at(pages, start + i), (start + i) % CELL_PAGE, place.address + i)) {
            return;
        }
    }
}

static void report_own(struct pe *pe, uint32_t address, struct race_side before, bool stores)
{
    const struct access access = {pe->mesh, &pe->races->view, 0, pe->number, pe->number, stores, 0, 0, 0, 0};
    report(&access, address, before, (struct race_side){DEED_CORE, pe->number, pe_counter(pe), 0, 0, stores});
}

/* Access a byte of the core's own memory, not yet stored or loaded since the last doorbell. False if there is a
 * race. */
static bool own_touch(struct pe *pe, struct cells *cells, uint32_t at, uint32_t address, bool stores)
{
    const struct access access = {pe->mesh, &pe->races->view, 0, pe->number, pe->number, stores, 0, 0, 0, 0};
    const uint32_t stored = cells->stored[at];
    if ((stored & DEED) != 0 && !follows(&access, stored)) {
        report_own(pe, address, side_of(pe->mesh, stored, 0, 0, true), stores);
        return false;
    }
    const uint32_t reader = stores ? unordered_reader(&access, cells->read[at]) : 0;
    if (reader != 0) {
        report_own(pe, address, side_of(pe->mesh, reader, 0, 0, false), stores);
        return false;
    }
    return true;
}

/* Access a word visible to all PEs, like a register. The word passes views on. */
void races_register(struct pe *pe, struct view *word, bool stores)
{
    if (pe->races != NULL) {
        pass_on(pe->mesh, word, &pe->races->view, stores);
        pe->races->view.time = stores ? races_next(pe->races->view.time) : pe->races->view.time;
    }
}

static bool is_polled(struct pe *pe, uint32_t address, bool stores)
{
    struct races *races = pe->races;
    struct view *word = races->polled_count == 0 ? NULL : polled_word(races, address);
    if (word != NULL) {
        races_register(pe, word, stores);
    }
    return word != NULL;
}

/* The core loads from its own memory. Other PEs may run at the same time. */
void races_load(struct pe *pe, uint32_t address, uint32_t bytes)
{
    const uint32_t start = place_of(pe, address), time = pe->races->view.time;
    uint32_t pc = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        struct cells *cells = page_at(pe->races->cells, start + i);
        const uint32_t at = (start + i) % CELL_PAGE;
        if (cells->stored[at] == time || cells->loaded[at] == time) {
            continue;
        }
        if (is_polled(pe, address + i, false)) {
            return;
        }
        if (!own_touch(pe, cells, at, address + i, false)) {
            return;
        }
        pc = pc == 0 ? pe_counter(pe) : pc;
        cells->loaded[at] = time;
        cells->loaded_at[at] = pc;
    }
}

void races_store(struct pe *pe, uint32_t address, uint32_t bytes)
{
    const uint32_t start = place_of(pe, address), time = pe->races->view.time;
    uint32_t pc = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        struct cells *cells = page_at(pe->races->cells, start + i);
        const uint32_t at = (start + i) % CELL_PAGE;
        if (cells->stored[at] == time && cells->read[at] == 0) {
            continue;
        }
        if (is_polled(pe, address + i, true)) {
            return;
        }
        if (!own_touch(pe, cells, at, address + i, true)) {
            return;
        }
        pc = pc == 0 ? pe_counter(pe) : pc;
        cells->stored[at] = time;
        cells->stored_at[at] = pc;
        cells->loaded[at] = cells->read[at] = 0;
    }
}

/* Order all past accesses of these bytes before later ones: the host wrote the bytes, or a program starts. */
void races_forget(struct pe *pe, uint32_t address, uint32_t bytes)
{
    const uint32_t start = place_of(pe, address);
    for (uint32_t i = 0; i < bytes; i++) {
        struct cells *cells = pe->races->cells[(start + i) / CELL_PAGE];
        if (cells != NULL) {
            const uint32_t at = (start + i) % CELL_PAGE;
            cells->stored[at] = cells->loaded[at] = cells->read[at] = 0;
        }
    }
}

/* ---- the board ---- */

static void create_pe(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    struct races *races = pe->races = needed(calloc(1, sizeof *races));
    races->view = (struct view){clocks_row(pe->mesh->pe_count), pe->number, 1, 0};
    races->cells = needed(calloc(figures->sram_bytes / CELL_PAGE + 1, sizeof *races->cells));
    races->flags = needed(calloc(figures->flags + 1, sizeof *races->flags));
    races->jobs = needed(calloc(DEVICES_PER_PE, sizeof *races->jobs));
    races->works = needed(calloc(DEVICES_PER_PE, sizeof *races->works));
}

/* Create the records, before PEs are powered up. A board with a single core has no races. */
void races_create(struct mesh *mesh)
{
    const struct figures *figures = &mesh->figures;
    const uint32_t chips = figures->chip_columns * figures->chip_rows;
    if (figures->stock && !figures->shared) {
        return;
    }
    mesh->deeds = needed(calloc(1, sizeof *mesh->deeds));
    mesh->deeds->dram = needed(calloc(chips, sizeof *mesh->deeds->dram));
    for (uint32_t chip = 0; chip < chips; chip++) {
        mesh->deeds->dram[chip] = needed(calloc(figures->dram_bytes / CELL_PAGE + 1, sizeof(struct cells *)));
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        create_pe(&mesh->pes[i]);
    }
}

void races_poll(struct pe *pe, uint32_t from, uint32_t to)
{
    struct races *races = pe->races;
    if (races != NULL && from < to && races->polled_count < MOST_POLLED) {
        struct view *words = needed(calloc((to - from + 3) / 4, sizeof *words));
        races->polled[races->polled_count++] = (struct polled){from, to, words};
    }
}

static void free_cells(struct cells **cells, uint64_t bytes)
{
    for (uint64_t page = 0; page <= bytes / CELL_PAGE; page++) {
        free(cells[page]);
    }
    free(cells);
}

static void free_pe(struct pe *pe)
{
    struct races *races = pe->races;
    for (uint32_t flag = 0; flag < pe->mesh->figures.flags; flag++) {
        for (size_t i = 0; i < races->flags[flag].count; i++) {
            clocks_let_go(&races->flags[flag].waiting[i].view);
        }
        free(races->flags[flag].waiting);
    }
    for (uint32_t i = 0; i < DEVICES_PER_PE; i++) {
        clocks_let_go(&races->jobs[i]);
    }
    for (uint32_t i = 0; i < races->polled_count; i++) {
        for (uint32_t word = 0; 4 * word < races->polled[i].to - races->polled[i].from; word++) {
            clocks_let_go(&races->polled[i].words[word]);
        }
        free(races->polled[i].words);
    }
    clocks_let_go(&races->view);
    free_cells(races->cells, pe->mesh->figures.sram_bytes);
    free(races->flags);
    free(races->jobs);
    free(races->works);
    free(races->landings.deeds);
    free(races->sent.deeds);
    free(races->unseen.deeds);
    free(races);
}

void races_free(struct mesh *mesh)
{
    const struct figures *figures = &mesh->figures;
    if (mesh->deeds == NULL) {
        return;
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        free_pe(&mesh->pes[i]);
    }
    for (uint32_t chip = 0; chip < figures->chip_columns * figures->chip_rows; chip++) {
        free_cells(mesh->deeds->dram[chip], figures->dram_bytes);
    }
    races_free_records(mesh);
    free(mesh->deeds->dram);
    free(mesh->deeds);
}
