/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The DMA engine of a PE: registers and chains of descriptors. Hardware manual, sections 4.1 and 4.2. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "noc.h"
#include "route.h"

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
enum { ERROR_QUEUE_FULL = 1, ERROR_PLACE, ERROR_KIND, ERROR_ROUTE, ERROR_ADDRESS, ERROR_FLAG };
#define NO_PLACE (DRAM_OF_CHIP - 1)

struct dma {
    uint32_t chains[QUEUE]; /* addresses of the first descriptors, the running chain first */
    uint64_t asked_at[QUEUE];
    struct view views[QUEUE]; /* the core's view at each doorbell: races.h */
    uint32_t chain_count;
    uint32_t next; /* address of the descriptor after the running one */
    uint32_t completed;
    uint32_t error;
    uint64_t stalled_until;
};

struct descriptor {
    uint32_t next, kind, source_pe, source, destination_pe, destination, size;
    int32_t source_stride, destination_stride;
    uint32_t flags, reserved[2];
};

_Static_assert(sizeof(struct descriptor) == DESCRIPTOR_BYTES, "twelve words");

static void start(struct pe *pe, uint32_t address);

static void drop_chains(struct dma *dma)
{
    for (; dma->chain_count > 0; dma->chain_count--) {
        clocks_let_go(&dma->views[dma->chain_count - 1]);
    }
}

static void fail(struct pe *pe, uint32_t error, uint32_t address)
{
    struct dma *dma = pe->dma;
    dma->error = dma->error != 0 ? dma->error : error;
    pe->error_count++;
    pe->last_error = error;
    pe->last_error_address = address;
    if (error != ERROR_QUEUE_FULL) {
        drop_chains(dma);
        pe_set_event(pe);
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
    if (!noc_pe_exists(mesh, destination.pe) || !noc_reaches(mesh, transfer->source.pe, destination.pe)) {
        return ERROR_ROUTE;
    }
    return inside(mesh, destination, transfer, transfer->destination_stride) ? 0 : ERROR_ADDRESS;
}

static uint32_t check(struct mesh *mesh, const struct transfer *transfer)
{
    const struct place source = transfer->source;
    if (!noc_pe_exists(mesh, source.pe) || !noc_reaches(mesh, transfer->owner->number, source.pe)) {
        return ERROR_ROUTE;
    }
    uint32_t error = inside(mesh, source, transfer, transfer->source_stride) ? 0 : ERROR_ADDRESS;
    for (uint32_t i = 0; i < transfer->destination_count && error == 0; i++) {
        error = check_destination(mesh, transfer, transfer->destinations[i]);
    }
    const uint32_t flags = mesh->figures.flags;
    const bool flags_exist = (transfer->source_flag == NO_FLAG || transfer->source_flag < flags) &&
                             (transfer->destination_flag == NO_FLAG || transfer->destination_flag < flags);
    return error != 0 || flags_exist ? error : ERROR_FLAG;
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
    const uint32_t flit_bytes = transfer->owner->mesh->figures.port_bytes_per_cycle;
    const uint64_t flits = (uint64_t)transfer->rows * ((transfer->row_bytes + flit_bytes - 1) / flit_bytes);
    transfer->flits = flits > 0 ? flits : 1;
}

static uint32_t fetch(struct pe *pe, uint32_t address, struct transfer *transfer)
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
    const uint32_t error = read_destinations(pe, &descriptor, transfer);
    return error != 0 ? error : check(pe->mesh, transfer);
}

static void leave(struct mesh *mesh, void *subject)
{
    noc_send(mesh, subject);
}

static void start(struct pe *pe, uint32_t address)
{
    struct mesh *mesh = pe->mesh;
    struct transfer *transfer = needed(calloc(1, sizeof *transfer));
    transfer->owner = pe;
    transfer->asked_at = pe->dma->asked_at[0];
    transfer->view = pe->races == NULL ? transfer->view : clocks_hold(pe->dma->views[0]);
    const uint32_t error = fetch(pe, address, transfer);
    if (error != 0) {
        races_end(transfer);
        free(transfer->destinations);
        free(transfer);
        fail(pe, error, address);
        return;
    }
    pe->bytes_sent += (uint64_t)transfer->rows * transfer->row_bytes;
    const uint64_t request = noc_request_cycles(mesh, pe->number, transfer->source.pe);
    const uint64_t begin = pe->dma->stalled_until > mesh->now ? pe->dma->stalled_until : mesh->now;
    events_post(mesh, begin + mesh->figures.setup_cycles + request + disturb_delay(pe), pe->number, leave, transfer);
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
void dma_source_done(struct transfer *transfer)
{
    struct pe *pe = transfer->owner;
    struct dma *dma = pe->dma;
    if (dma->chain_count == 0) {
        return; /* the engine was stopped meanwhile */
    }
    dma->completed++;
    noc_count_flag(pe->mesh, pe->number, transfer->source_flag, transfer, false);
    if (dma->next != 0) {
        start(pe, dma->next);
        return;
    }
    drop_first_chain(dma);
    races_chain_ends(pe);
    if (dma->chain_count > 0) {
        start(pe, dma->chains[0]);
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
        start(pe, address);
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

static uint32_t read_dma(struct pe *pe, void *device, uint32_t offset)
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

static void write_dma(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct dma *dma = device;
    uint32_t *flag = flag_at(pe, offset);
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
    *pe->dma = (struct dma){0};
    memset(pe->flags, 0, pe->mesh->figures.flags * sizeof *pe->flags);
}

const char *dma_attach(struct pe *pe)
{
    pe->dma = needed(calloc(1, sizeof *pe->dma));
    const uint32_t bytes = FLAGS_AT + 4 * pe->mesh->figures.flags;
    const struct bus_port port = {NULL, pe->dma, read_dma, write_dma, NULL, false, true, 0};
    return bus_attach(pe, pe->mesh->figures.noc_base, bytes, port);
}
