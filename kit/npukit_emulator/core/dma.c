/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The DMA engine of a PE: registers and chains of descriptors. Hardware manual, sections 4.1 and 4.2. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "network.h"

enum { QUEUE = 8, DESCRIPTOR_BYTES = 48, FLAGS_AT = 0x100, NO_FLAG = 0xFF };
enum { KIND_COPY = 1, MULTICAST = 1 << 8 };
enum { STATUS_BUSY = 1, STATUS_ERROR = 2 };
enum register_offset {
    DOORBELL = 0x00,
    STATUS = 0x04,
    COMPLETED = 0x08,
    ERROR = 0x0C,
    PE = 0x10,
    PES = 0x14,
    CHIP = 0x18,
};
enum { ERROR_QUEUE_FULL = 1, ERROR_PLACE = NOC_ERROR_PLACE, ERROR_KIND, ERROR_ROUTE, ERROR_ADDRESS, ERROR_FLAG };
#define NO_PLACE (DRAM_OF_CHIP - 1)

struct dma {
    uint32_t chains[QUEUE]; /* addresses of the first descriptors, the running chain first */
    uint64_t asked_at[QUEUE];
    struct view views[QUEUE]; /* the core's view at each doorbell: races.h */
    uint32_t chain_count;
    uint32_t address, next; /* of the descriptor that is due or running; of the one after it */
    uint32_t completed;
    uint32_t reign; /* counts the times that all chains were dropped */
    uint32_t error, due_error; /* due_error: an error of the descriptor, not shown yet */
    uint64_t stalled_until;
};

struct descriptor {
    uint32_t next, kind, source_pe, source, destination_pe, destination, size;
    int32_t source_stride, destination_stride;
    uint32_t flags, reserved[2];
};

_Static_assert(sizeof(struct descriptor) == DESCRIPTOR_BYTES, "twelve words");

static void drop_chains(struct dma *dma)
{
    for (; dma->chain_count > 0; dma->chain_count--) {
        clocks_let_go(&dma->views[dma->chain_count - 1]);
    }
    dma->reign++;
    dma->due_error = 0;
}

static void fail(struct pe *pe, uint32_t error, uint32_t address)
{
    struct dma *dma = pe->dma;
    if (dma->error == 0 && error != ERROR_QUEUE_FULL) {
        network_shows(pe->mesh, pe->number, NETWORK_FAILED, error);
    }
    dma->error = dma->error != 0 ? dma->error : error;
    pe->error_count++;
    pe->last_error = error;
    pe->last_error_address = address;
    if (error != ERROR_QUEUE_FULL) {
        drop_chains(dma);
        dma_port_drop(pe);
        network_shows(pe->mesh, pe->number, NETWORK_WOKEN, 0);
        pe_set_event(pe);
    }
}

static void on_fail(struct mesh *mesh, void *subject)
{
    struct pe *pe = subject;
    (void)mesh;
    if (pe->dma->due_error != 0) { /* its chain was not dropped meanwhile */
        fail(pe, pe->dma->due_error, pe->dma->address);
    }
}

void dma_fail_at(struct pe *pe, uint32_t error, uint64_t time)
{
    pe->dma->due_error = error;
    events_post(pe->mesh, time, pe->number, on_fail, pe);
}

void dma_report(struct pe *pe, uint32_t error)
{
    if (pe->dma != NULL) {
        fail(pe, error, 0);
    }
}

/* ---- checks ---- */

static bool inside(struct mesh *mesh, struct place place, const struct transfer *transfer, int32_t stride)
{
    uint64_t bytes;
    if (transfer->rows == 0 || transfer->row_bytes == 0) {
        return true;
    }
    noc_memory(mesh, place.pe, &bytes);
    const int64_t last = place.address + (int64_t)(transfer->rows - 1) * stride;
    const int64_t low = last < place.address ? last : place.address;
    const int64_t high = (last < place.address ? place.address : last) + transfer->row_bytes;
    return low >= 0 && (uint64_t)high <= bytes;
}

static uint32_t check_destination(struct mesh *mesh, const struct transfer *transfer, struct place destination)
{
    const bool to_list = transfer->multicast;
    if ((to_list && noc_is_dram(destination.pe)) || !noc_pe_exists(mesh, destination.pe) ||
        !noc_reaches(mesh, transfer->source.pe, destination.pe)) {
        return ERROR_ROUTE;
    }
    return inside(mesh, destination, transfer, transfer->destination_stride) ? 0 : ERROR_ADDRESS;
}

static uint32_t check_source(struct mesh *mesh, const struct transfer *transfer)
{
    const struct place source = transfer->source;
    if (!noc_pe_exists(mesh, source.pe) || !noc_reaches(mesh, transfer->owner->number, source.pe)) {
        return ERROR_ROUTE;
    }
    return inside(mesh, source, transfer, transfer->source_stride) ? 0 : ERROR_ADDRESS;
}

static uint32_t check_flags(const struct transfer *transfer)
{
    const uint32_t flags = transfer->owner->mesh->figures.flags;
    const bool elsewhere = transfer->source.pe != transfer->owner->number;
    const bool source_exists = transfer->source_flag < flags && !elsewhere;
    const bool exist = (transfer->source_flag == NO_FLAG || source_exists) &&
                       (transfer->destination_flag == NO_FLAG || transfer->destination_flag < flags);
    return exist ? 0 : ERROR_FLAG;
}

uint32_t dma_check(const struct transfer *transfer, uint32_t first, uint32_t count)
{
    struct mesh *mesh = transfer->owner->mesh;
    uint32_t error = first == 0 ? check_source(mesh, transfer) : 0;
    for (uint32_t i = first; i < first + count && error == 0; i++) {
        error = check_destination(mesh, transfer, transfer->destinations[i]);
    }
    return error != 0 ? error : check_flags(transfer);
}

/* ---- descriptors ---- */

/* The board-wide number of a descriptor's PE or DRAM, or NO_PLACE. */
static uint32_t on_board(const struct pe *pe, uint32_t place)
{
    const struct figures *figures = &pe->mesh->figures;
    const uint32_t chip = route_chip(figures, pe->number), pes = figures->columns * figures->rows;
    const uint32_t number = place & ~(DRAM_OF_CHIP | THIS_CHIP);
    if ((place & THIS_CHIP) == 0) {
        return place;
    }
    if ((place & DRAM_OF_CHIP) != 0) {
        return number == 0 ? DRAM_OF_CHIP + chip : NO_PLACE;
    }
    return number < pes ? chip * pes + number : NO_PLACE;
}

static uint32_t read_destinations(struct pe *pe, const struct descriptor *descriptor, struct transfer *transfer)
{
    const bool multicast = (descriptor->kind & MULTICAST) != 0;
    const struct place single = {descriptor->destination_pe, descriptor->destination};
    const uint32_t count = multicast ? descriptor->destination : 1;
    const uint64_t end = descriptor->destination_pe + (uint64_t)count * sizeof(struct place);
    if (multicast && (count == 0 || descriptor->destination_pe % 4 != 0 || end > pe->mesh->figures.sram_bytes)) {
        return ERROR_ADDRESS;
    }
    transfer->destinations = needed(malloc(count * sizeof single)); /* `count` is bounded by the SRAM's size */
    memcpy(transfer->destinations, multicast ? (const void *)(pe->sram + descriptor->destination_pe) : &single,
           count * sizeof single);
    for (uint32_t i = 0; i < count; i++) {
        transfer->destinations[i].pe = on_board(pe, transfer->destinations[i].pe);
    }
    transfer->destination_count = count;
    transfer->multicast = multicast;
    if (multicast) {
        races_fetch_list(transfer, descriptor->destination_pe);
    }
    return 0;
}

static void fill(struct transfer *transfer, const struct descriptor *descriptor)
{
    transfer->tag = descriptor->kind >> 16;
    transfer->row_bytes = descriptor->size & 0xFFFF;
    transfer->rows = descriptor->size >> 16;
    transfer->source_stride = descriptor->source_stride;
    transfer->destination_stride = descriptor->destination_stride;
    transfer->source_flag = descriptor->flags & 0xFF;
    transfer->destination_flag = descriptor->flags >> 8 & 0xFF;
    transfer->source = (struct place){on_board(transfer->owner, descriptor->source_pe), descriptor->source};
}

static uint32_t read_descriptor(struct pe *pe, uint32_t address, struct transfer *transfer)
{
    struct descriptor descriptor;
    if (address % 16 != 0 || (uint64_t)address + DESCRIPTOR_BYTES > pe->mesh->figures.sram_bytes) {
        return ERROR_PLACE;
    }
    memcpy(&descriptor, pe->sram + address, sizeof descriptor);
    if ((descriptor.kind & 0xFF) != KIND_COPY) {
        return ERROR_KIND;
    }
    pe->dma->next = descriptor.next;
    fill(transfer, &descriptor);
    races_fetch(transfer, address, DESCRIPTOR_BYTES);
    return read_destinations(pe, &descriptor, transfer);
}

struct transfer *dma_fetch(struct pe *pe, uint32_t *error)
{
    struct transfer *transfer = needed(calloc(1, sizeof *transfer));
    transfer->owner = pe;
    transfer->reign = pe->dma->reign;
    transfer->asked_at = pe->dma->asked_at[0];
    transfer->view = pe->races == NULL ? transfer->view : clocks_hold(pe->dma->views[0]);
    *error = read_descriptor(pe, pe->dma->address, transfer);
    if (*error != 0) {
        noc_abandon(transfer);
        return NULL;
    }
    pe->bytes_sent += (uint64_t)transfer->rows * transfer->row_bytes;
    return transfer;
}

static void start(struct pe *pe, uint32_t address, uint64_t from)
{
    struct dma *dma = pe->dma;
    dma->address = address;
    const uint64_t delay = pe->mesh->network == NULL ? disturb_delay(pe) : 0; /* else as its model */
    dma_port_fetch(pe->mesh, pe, (dma->stalled_until > from ? dma->stalled_until : from) + delay);
}

static void drop_first_chain(struct dma *dma)
{
    dma->chain_count--;
    clocks_let_go(&dma->views[0]);
    memmove(dma->views, dma->views + 1, dma->chain_count * sizeof dma->views[0]);
    memmove(dma->chains, dma->chains + 1, dma->chain_count * sizeof dma->chains[0]);
    memmove(dma->asked_at, dma->asked_at + 1, dma->chain_count * sizeof dma->asked_at[0]);
}

/* The source may be overwritten: start the next descriptor. */
void dma_done(struct transfer *transfer)
{
    struct pe *pe = transfer->owner;
    struct dma *dma = pe->dma;
    const uint64_t now = pe->mesh->now;
    if (transfer->reign != dma->reign) {
        return; /* its chain was dropped meanwhile */
    }
    dma->completed++;
    network_shows(pe->mesh, pe->number, NETWORK_DONE, 0);
    noc_count_flag(pe->mesh, pe->number, transfer->source_flag, transfer, false);
    if (dma->next != 0) {
        start(pe, dma->next, now);
        return;
    }
    drop_first_chain(dma);
    races_chain_ends(pe);
    if (dma->chain_count > 0) {
        start(pe, dma->chains[0], now);
    }
}

/* ---- registers ---- */

static void ring(struct pe *pe, uint32_t address)
{
    struct dma *dma = pe->dma;
    if (dma->chain_count == QUEUE) {
        fail(pe, ERROR_QUEUE_FULL, address);
        return;
    }
    dma->asked_at[dma->chain_count] = pe->mesh->now;
    dma->views[dma->chain_count] = races_ring(pe);
    dma->chains[dma->chain_count++] = address;
    if (dma->chain_count == 1) {
        start(pe, address, pe->mesh->now + 1);
    }
}

static uint32_t *flag_at(struct pe *pe, uint32_t offset)
{
    const uint32_t flag = (offset - FLAGS_AT) / 4;
    return offset >= FLAGS_AT && flag < pe->mesh->figures.flags ? &pe->flags[flag] : NULL;
}

static uint32_t status(struct pe *pe)
{
    const struct dma *dma = pe->dma;
    if (dma->error == 0) {
        races_accepted(pe);
    } else if (dma->error != ERROR_QUEUE_FULL && dma->chain_count == 0) { /* the error has ended all chains */
        races_completed(pe, 0);
    }
    const bool idle = dma->chain_count == 0 && races_sees_idle(pe);
    return (idle ? 0U : STATUS_BUSY) | (dma->error != 0 ? STATUS_ERROR : 0U);
}

static uint32_t read_shown(struct pe *pe, void *device, uint32_t offset)
{
    const struct dma *dma = device;
    const uint32_t *flag = flag_at(pe, offset);
    if (offset != STATUS && pe->races != NULL) {
        pe->races->idle_at = NO_SITE;
    }
    if (flag != NULL) {
        pe->read_address = (uint32_t)pe->mesh->figures.noc_base + offset;
        pe->read_value = *flag - races_look(pe, (offset - FLAGS_AT) / 4);
        return pe->read_value;
    }
    switch ((enum register_offset)offset) {
    case STATUS:
        return status(pe);
    case COMPLETED:
        races_completed(pe, dma->chain_count > 0 ? 1 : 0);
        return dma->completed;
    case ERROR:
        return dma->error;
    case PE:
        return pe->number;
    case PES:
        return pe->mesh->pe_count;
    case CHIP:
        return pe->number / (pe->mesh->figures.columns * pe->mesh->figures.rows);
    default:
        return 0;
    }
}

/* As read_shown(), but with all counts in their cycles: the search for races shows some late. */
static uint32_t read_at_once(struct pe *pe, uint32_t offset, uint32_t shown)
{
    const uint32_t *flag = flag_at(pe, offset);
    const struct dma *dma = pe->dma;
    if (offset == STATUS) {
        return (dma->chain_count > 0 ? STATUS_BUSY : 0U) | (dma->error != 0 ? STATUS_ERROR : 0U);
    }
    return flag != NULL ? *flag : shown;
}

static uint32_t read_dma(struct pe *pe, void *device, uint32_t offset)
{
    const uint32_t shown = read_shown(pe, device, offset);
    if (pe->mesh->network != NULL) {
        network_read(pe, offset, read_at_once(pe, offset, shown));
    }
    return shown;
}

static void write_dma(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct dma *dma = device;
    uint32_t *flag = flag_at(pe, offset);
    network_write(pe, offset, value);
    if (flag != NULL) {
        *flag = value;
        races_set_flag(pe, (offset - FLAGS_AT) / 4);
    } else if (offset == DOORBELL) {
        pe_needs_barrier(pe);
        ring(pe, value);
    } else if (offset == ERROR) {
        dma->error = 0;
    }
}

/* Stop the engine for good. Messages under way still arrive. */
void dma_stop(struct pe *pe)
{
    if (pe->dma != NULL) {
        drop_chains(pe->dma);
        dma_port_drop(pe);
    }
}

/* Start no descriptor before a cycle. */
void dma_stall(struct pe *pe, uint64_t until)
{
    if (pe->dma != NULL) {
        pe->dma->stalled_until = until;
    }
}

void dma_reset(struct pe *pe)
{
    drop_chains(pe->dma);
    dma_port_drop(pe);
    *pe->dma = (struct dma){.reign = pe->dma->reign};
    memset(pe->flags, 0, pe->mesh->figures.flags * sizeof *pe->flags);
}

const char *dma_attach(struct pe *pe)
{
    pe->dma = needed(calloc(1, sizeof *pe->dma));
    const uint32_t bytes = FLAGS_AT + 4 * pe->mesh->figures.flags;
    const struct bus_port port = {NULL, pe->dma, read_dma, write_dma, NULL, false, true, 0};
    return bus_attach(pe, pe->mesh->figures.noc_base, bytes, port);
}
