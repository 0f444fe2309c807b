/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The order between a core, its DMA engine, its accelerators and other PEs. It follows from the hardware manual's
 * doorbells, ends of work and flags, and from the order in which an engine works and messages arrive.
 *
 * Increments of a flag are shown late: of two reads in a row, the second shows one more. Therefore a core learns of a
 * message only by waiting for it, however early the message has arrived. */
#include <stdlib.h>

#include "network.h"
#include "races.h"

enum { QUEUE = 8 };
/* Most increments kept of a flag never read by the core. Beyond that number, the oldest is taken as seen. */
enum { MOST_WAITING = 256 };

/* Hand over the core's view. Later accesses of the core do not belong to the view. */
struct view races_release(struct pe *pe)
{
    struct races *races = pe->races;
    const struct view view = clocks_hold(races->view);
    races->view.time = races_next(races->view.time);
    return view;
}

/* A program starts: all past accesses of the PE's memory come before. */
void races_start(struct pe *pe)
{
    struct races *races = pe->races;
    if (races == NULL) {
        return;
    }
    for (uint32_t i = 0; i < pe->mesh->figures.memory_count; i++) {
        races_forget(pe, pe->memory_bases[i], pe->memory_bytes[i]);
    }
    for (uint32_t flag = 0; flag < pe->mesh->figures.flags; flag++) {
        races_set_flag(pe, flag);
    }
    races->landings.count = races->unseen.count = 0;
    races->rung = races->over = 0;
}

/* A core's access to another PE's memory, or to shared memory. */
void races_window(struct pe *pe, struct place place, uint32_t bytes, bool stores)
{
    struct races *races = pe->races;
    if (races != NULL) {
        const uint32_t kind = stores ? DEED_WINDOW_STORE : DEED_WINDOW_LOAD;
        const struct deed deed = {
            .kind = (uint8_t)kind, .pe = pe->number, .count = races->view.time, .address = pe->site};
        races_access(pe->mesh, &races->view, races_deed(pe->mesh, deed), place, bytes, stores);
        races->view.time = stores ? races_next(races->view.time) : races->view.time;
    }
}

/* ---- the engine ---- */

struct view races_ring(struct pe *pe)
{
    if (pe->races == NULL) {
        return (struct view){0};
    }
    pe->races->rung++;
    return races_release(pe);
}

void races_chain_ends(struct pe *pe)
{
    struct races *races = pe->races;
    if (races != NULL) {
        races->last_of[++races->over % CHAINS_KEPT] = races->started;
    }
}

/* A descriptor starts. The transfer has the view of the chain's doorbell. */
void races_fetch(struct transfer *transfer, uint32_t address, uint32_t bytes)
{
    struct pe *pe = transfer->owner;
    if (pe->races == NULL) {
        return;
    }
    if (transfer->deed == 0) {
        transfer->view.engine = pe->races->started;
        pe->races->started = races_next(pe->races->started);
        transfer->descriptor = address;
        const struct deed deed = {.kind = DEED_FETCH, .kept = HELD, .tag = transfer->tag, .pe = pe->number,
                                  .count = pe->races->started, .address = address, .under_way = 1};
        transfer->deed = races_deed(pe->mesh, deed);
    }
    races_access(pe->mesh, &transfer->view, transfer->deed, (struct place){pe->number, address}, bytes, false);
}

void races_fetch_list(struct transfer *transfer, uint32_t address)
{
    if (transfer->deed != 0) {
        races_of(transfer->owner->mesh, transfer->deed)->under_way = transfer->destination_count;
        races_fetch(transfer, address, (uint32_t)(transfer->destination_count * sizeof(struct place)));
    }
}

void races_read_source(struct transfer *transfer)
{
    struct mesh *mesh = transfer->owner->mesh;
    for (uint32_t row = 0; row < transfer->rows && transfer->deed != 0; row++) {
        const uint32_t address = (uint32_t)(transfer->source.address + (int64_t)row * transfer->source_stride);
        const struct place place = {transfer->source.pe, address};
        races_access(mesh, &transfer->view, transfer->deed, place, transfer->row_bytes, false);
    }
}

static uint32_t chip_of(const struct mesh *mesh, uint32_t place)
{
    return noc_router(mesh, place) / (mesh->figures.columns * mesh->figures.rows);
}

/* Whether messages between two places stay in order. All take the same links, but at a border of several links a
 * message may overtake the message before. */
static bool keep_order(const struct mesh *mesh, uint32_t from, uint32_t to)
{
    return chip_of(mesh, from) == chip_of(mesh, to) || mesh->figures.chip_links_per_border == 1;
}

/* Whether source and destination are done at once: within a memory, and between DRAM and the PE at the same router. */
static bool is_at_once(const struct mesh *mesh, const struct transfer *transfer, uint32_t to)
{
    return noc_router(mesh, transfer->source.pe) == noc_router(mesh, to);
}

static uint32_t start_of(const struct mesh *mesh, const struct transfer *transfer, uint32_t to)
{
    return keep_order(mesh, transfer->source.pe, to) ? transfer->source.pe : NOWHERE_AT;
}

static struct deed landing_of(const struct mesh *mesh, const struct transfer *transfer, struct place to)
{
    return (struct deed){.kind = DEED_LANDING,
                         .at_once = is_at_once(mesh, transfer, to.pe),
                         .tag = transfer->tag,
                         .pe = transfer->owner->number,
                         .count = races_of(mesh, transfer->deed)->count,
                         .address = transfer->descriptor,
                         .from = start_of(mesh, transfer, to.pe),
                         .observer = noc_router(mesh, to.pe),
                         .landings = races_of(mesh, transfer->deed)->landings};
}

static void remember_for_host(struct pe *pe, uint32_t landing)
{
    struct races *races = pe->races;
    if (pe->number == pe->mesh->root) {
        races_list(&races->sent, landing);
    }
}

/* The root PE reads a byte from the host. Before, the host received the last answer: thousands of cycles without a
 * message from the root PE. So the root PE's earlier copies for the host have landed, and a PE ordered after a copy's
 * source is also ordered after the landing. */
void races_host_speaks(struct pe *pe)
{
    struct races *races = pe->races;
    for (size_t i = 0; races != NULL && i < races->sent.count; i++) {
        races_of(pe->mesh, races->sent.deeds[i])->at_once = true;
    }
    if (races != NULL) {
        races->sent.count = 0;
    }
}

void races_land(struct transfer *transfer, struct place to)
{
    struct mesh *mesh = transfer->owner->mesh;
    if (transfer->deed == 0) {
        return;
    }
    struct deed *fetch = races_of(mesh, transfer->deed);
    transfer->landing = fetch->landings = races_deed(mesh, landing_of(mesh, transfer, to));
    fetch->under_way--;
    for (uint32_t row = 0; row < transfer->rows; row++) {
        const uint32_t address = (uint32_t)(to.address + (int64_t)row * transfer->destination_stride);
        const struct place place = {to.pe, address};
        races_access(mesh, &transfer->view, transfer->landing, place, transfer->row_bytes, true);
    }
    races_list(&mesh->pes[noc_router(mesh, to.pe)].races->landings, transfer->landing);
    remember_for_host(transfer->owner, transfer->landing);
}

void races_end(struct transfer *transfer)
{
    if (transfer->deed != 0) {
        races_of(transfer->owner->mesh, transfer->deed)->kept = 0;
    }
    clocks_let_go(&transfer->view);
}

/* The core learns that the engine has read `count` descriptors with their sources. */
static void know_engine(struct races *races, uint32_t count)
{
    races->view.engine = races->view.engine < count ? count : races->view.engine;
}

/* The core reads that the last doorbell was accepted. The queue has eight places: of nine chains, the first is over. */
void races_accepted(struct pe *pe)
{
    struct races *races = pe->races;
    if (races != NULL && races->rung > QUEUE) {
        know_engine(races, races->last_of[(races->rung - QUEUE) % CHAINS_KEPT]);
    }
}

void races_completed(struct pe *pe, uint32_t running)
{
    if (pe->races != NULL) {
        know_engine(pe->races, pe->races->started - running);
    }
}

/* Whether a read shows the engine as idle: only the second of two by the same instruction, with no other in between. */
bool races_sees_idle(struct pe *pe)
{
    struct races *races = pe->races;
    if (races == NULL) {
        return true;
    }
    const bool again = races->idle_at == pe->site;
    races->idle_at = pe->site;
    if (again) {
        know_engine(races, races->started);
    }
    return again;
}

/* ---- flags ---- */

/* The core sees a message, and with it all earlier messages that cannot have been overtaken. */
static void see_landings(struct pe *pe, const struct arrived *arrived)
{
    struct races *races = pe->races;
    struct deed_list *landings = &races->landings;
    size_t kept = 0;
    for (size_t i = 0; i < landings->count; i++) {
        struct deed *deed = races_of(pe->mesh, landings->deeds[i]);
        const bool before = deed->pe == arrived->view.pe && deed->from == arrived->from && deed->from != NOWHERE_AT &&
                            deed->count <= arrived->number;
        if (before || landings->deeds[i] == arrived->landing) {
            deed->seen = races->view.time;
        } else {
            landings->deeds[kept++] = landings->deeds[i];
        }
    }
    landings->count = kept;
}

static void see_first(struct pe *pe, struct counted *counted)
{
    struct arrived first = counted->waiting[0];
    counted->count--;
    for (size_t i = 0; i < counted->count; i++) {
        counted->waiting[i] = counted->waiting[i + 1];
    }
    clocks_learn(&pe->races->view, &first.view, pe->mesh->pe_count);
    see_landings(pe, &first);
    clocks_let_go(&first.view);
}

/* A flag of the PE counts: a source has been read, or a message has arrived. */
void races_counted(struct pe *pe, uint32_t flag, const struct transfer *transfer, bool arrived)
{
    if (pe->races == NULL) {
        return;
    }
    struct counted *counted = &pe->races->flags[flag];
    if (counted->count == MOST_WAITING) {
        see_first(pe, counted);
    }
    struct view view = clocks_hold(transfer->view);
    view.engine += !arrived || transfer->destination_count == 1 ? 1 : 0;
    counted->waiting = grow(counted->waiting, &counted->room, counted->count + 1, sizeof counted->waiting[0]);
    const uint32_t number = races_of(pe->mesh, transfer->deed)->count;
    const uint32_t from = arrived ? start_of(pe->mesh, transfer, pe->number) : NOWHERE_AT;
    counted->waiting[counted->count++] = (struct arrived){view, number, from, arrived ? transfer->landing : 0};
}

/* The core reads a flag. Returns the number of increments to hide. Hidden increments set the event register again. */
uint32_t races_look(struct pe *pe, uint32_t flag)
{
    if (pe->races == NULL) {
        return 0;
    }
    struct counted *counted = &pe->races->flags[flag];
    const bool shows = counted->looked && counted->count > 0;
    counted->looked = !shows;
    if (shows) {
        see_first(pe, counted);
    }
    pe->event = pe->event || counted->count > 0;
    return (uint32_t)counted->count;
}

/* The core sets a flag: earlier increments are lost. */
void races_set_flag(struct pe *pe, uint32_t flag)
{
    if (pe->races == NULL) {
        return;
    }
    struct counted *counted = &pe->races->flags[flag];
    for (size_t i = 0; i < counted->count; i++) {
        clocks_let_go(&counted->waiting[i].view);
    }
    counted->count = 0;
    counted->looked = false;
}

/* ---- accelerators ---- */

static uint32_t number_of(const struct device_host *host)
{
    return (uint32_t)(host - host->pe->devices);
}

void races_work_begins(struct device_host *host, uint32_t address)
{
    struct races *races = host->pe->races;
    if (races == NULL) {
        return;
    }
    const uint8_t device = (uint8_t)number_of(host);
    const struct deed deed = {.kind = DEED_WORK, .device = device, .pe = host->pe->number, .address = address};
    const uint32_t work = races_deed(host->pe->mesh, deed);
    races->works[number_of(host)] = work;
    races_list(&races->unseen, work);
}

void races_work_asked(struct device_host *host, uint32_t value)
{
    struct races *races = host->pe->races;
    if (races != NULL) {
        struct view *job = &races->jobs[number_of(host)];
        clocks_let_go(job);
        *job = races_release(host->pe);
        races_work_begins(host, value);
    }
}

void races_work_accesses(struct device_host *host, uint32_t address, uint32_t bytes, bool stores)
{
    struct races *races = host->pe->races;
    if (races != NULL && races->jobs[number_of(host)].row != NULL) {
        const struct place place = {host->pe->number, address};
        struct view *job = &races->jobs[number_of(host)];
        races_access(host->pe->mesh, job, races->works[number_of(host)], place, bytes, stores);
    }
}

/* The core reads a register of an idle accelerator. */
void races_work_seen(struct device_host *host)
{
    struct races *races = host->pe->races;
    size_t kept = 0;
    for (size_t i = 0; races != NULL && i < races->unseen.count; i++) {
        struct deed *deed = races_of(host->pe->mesh, races->unseen.deeds[i]);
        if (deed->device == number_of(host)) {
            deed->seen = races->view.time;
        } else {
            races->unseen.deeds[kept++] = races->unseen.deeds[i];
        }
    }
    if (races != NULL) {
        races->unseen.count = kept;
    }
}
