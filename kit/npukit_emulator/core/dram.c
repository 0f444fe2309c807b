/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The DRAM of a chip and its controller. Hardware manual, section 4.7. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

/* An access: the begin of its first burst, and its end. */
struct access {
    uint64_t begin, end;
};

/* Time on the data bus. `bytes`: of a cycle's dram_bytes_per_cycle, transferred behind `cycle`. */
struct bus_time {
    uint64_t cycle, bytes;
};

static uint64_t end_of(const struct mesh *mesh, struct bus_time time)
{
    const uint64_t width = mesh->figures.dram_bytes_per_cycle;
    return time.cycle + (time.bytes + width - 1) / width;
}

/* ---- banks and refresh ---- */

static void close_banks(struct mesh *mesh, struct dram *dram, uint64_t until)
{
    for (uint32_t i = 0; i < mesh->figures.dram_banks; i++) {
        dram->bank_row[i] = NEVER;
        dram->bank_free[i] = until;
    }
}

/* Refresh as often as due by this cycle. An access ends first. */
static void refresh(struct mesh *mesh, struct dram *dram)
{
    const uint64_t interval = mesh->figures.dram_refresh_interval, cycles = mesh->figures.dram_refresh_cycles;
    if (interval == 0 || dram->refresh_at > mesh->now) {
        return;
    }
    const uint64_t missed = (mesh->now - dram->refresh_at) / interval; /* nobody saw these */
    const uint64_t due = dram->refresh_at + missed * interval, from = due > dram->free ? due : dram->free;
    close_banks(mesh, dram, from + cycles);
    dram->refresh_at = due + interval;
}

/* Transfer the bursts of a row of the memory. */
static void transfer_row(struct mesh *mesh, struct dram *dram, uint64_t address, uint64_t bytes, uint64_t known,
                         struct bus_time *time)
{
    const struct figures *figures = &mesh->figures;
    const uint64_t burst = figures->dram_burst_bytes, row = address / figures->dram_row_bytes;
    const uint64_t bank = row % figures->dram_banks, first = address / burst, last = (address + bytes - 1) / burst;
    if (dram->bank_row[bank] != row) {
        const uint64_t from = dram->bank_free[bank] > known ? dram->bank_free[bank] : known;
        const uint64_t open = from + figures->dram_row_cycles;
        *time = open >= end_of(mesh, *time) ? (struct bus_time){open, 0} : *time;
        dram->bank_row[bank] = row;
    }
    time->bytes += (last - first + 1) * burst;
    dram->bank_free[bank] = end_of(mesh, *time);
}

static struct access access_memory(struct mesh *mesh, struct dram *dram, const struct packet *packet, struct place place,
                                   int32_t stride, uint64_t known)
{
    const uint64_t size = mesh->figures.dram_row_bytes;
    struct bus_time time = {mesh->now, 0};
    struct access access = {NEVER, 0};
    for (uint32_t i = 0; i < packet->rows; i++) {
        uint64_t at = (uint64_t)(place.address + (int64_t)(packet->row + i) * stride) + packet->offset;
        for (uint64_t left = packet->row_bytes; left > 0;) {
            const uint64_t room = size - at % size, bytes = left < room ? left : room;
            transfer_row(mesh, dram, at, bytes, known, &time);
            access.begin = access.begin == NEVER ? time.cycle : access.begin;
            at += bytes;
            left -= bytes;
        }
    }
    access.begin = access.begin == NEVER ? mesh->now : access.begin;
    access.end = packet->data_flits == 0 ? mesh->now + 1 : end_of(mesh, time);
    dram->free = access.end;
    return access;
}

/* ---- accesses ---- */

static uint32_t router_of(const struct mesh *mesh, uint32_t chip)
{
    return noc_router(mesh, DRAM_OF_CHIP + chip);
}

/* Send a packet to the router's input, on a link of a flit in a cycle. `since`: the header's first possible
 * cycle. */
static void send(struct mesh *mesh, uint32_t chip, struct packet *packet, uint64_t since)
{
    struct dram *dram = &mesh->noc->drams[chip];
    const uint64_t begin = since > dram->link_free ? since : dram->link_free;
    dram->link_free = begin + packet->flits;
    router_put(mesh, router_of(mesh, chip), PORT_DRAM, packet, begin);
}

static void trace_access(struct mesh *mesh, uint32_t chip, struct access access)
{
    trace_record(mesh, (struct trace_record){mesh->now, access.end, TRACE_DRAM, chip, 0, 0, 0, 0});
}

static void write_packet(struct mesh *mesh, uint32_t chip)
{
    struct dram *dram = &mesh->noc->drams[chip];
    struct buffer *buffer = &dram->channels[DATA];
    struct packet *packet = buffer->queue[0].packet;
    const uint64_t known = buffer->queue[0].from;
    const struct transfer *transfer = packet->transfer;
    const struct place place = transfer->destinations[packet->destinations[0]];
    const struct access access = access_memory(mesh, dram, packet, place, transfer->destination_stride, known);
    trace_access(mesh, chip, access);
    buffer_remove(buffer, access.end);
    if (noc_end_packet(mesh, router_of(mesh, chip), packet, PORT_DRAM, access.end) && packet->wants_acknowledgement) {
        send(mesh, chip, packet_of(packet->transfer, ACKNOWLEDGEMENT, 1), access.end);
    }
    free(packet);
}

static void read_packet(struct mesh *mesh, uint32_t chip, uint64_t known)
{
    struct dram *dram = &mesh->noc->drams[chip];
    struct transfer *transfer = dram->served.transfer;
    struct packet *packet = cutter_next(&dram->served);
    const struct access access = access_memory(mesh, dram, packet, transfer->source, transfer->source_stride, known);
    const uint64_t cycles = access.end - access.begin, late = cycles > packet->flits ? cycles - packet->flits : 0;
    trace_access(mesh, chip, access);
    if (packet->last) {
        dram->serves = false;
        struct packet *request = dram->channels[REQUEST].queue[0].packet;
        buffer_remove(&dram->channels[REQUEST], access.end);
        free(request);
        noc_read_at(mesh, transfer, access.end);
    }
    send(mesh, chip, packet, access.begin + late);
}

/* Begin to serve the first request, if no other is served. */
static void take_request(struct mesh *mesh, struct dram *dram)
{
    const struct packet *request = buffer_first(&dram->channels[REQUEST], mesh->now);
    if (!dram->serves && request != NULL) {
        dram->serves = true;
        cutter_begin(&dram->served, request->transfer, request->group);
        dram->known = dram->channels[REQUEST].queue[0].from + mesh->figures.dram_latency_cycles;
        dram->known += request->group == 0 ? noc_begin(mesh, request->transfer) : 0;
        router_ask(mesh, router_of(mesh, (uint32_t)(dram - mesh->noc->drams)), dram->known);
    }
}

void dram_grant(struct mesh *mesh, uint32_t chip)
{
    struct dram *dram = &mesh->noc->drams[chip];
    const uint32_t pe = router_of(mesh, chip);
    take_request(mesh, dram);
    const struct packet *write = buffer_first(&dram->channels[DATA], mesh->now);
    if ((write == NULL && !dram->serves) || dram->free > mesh->now) {
        return;
    }
    refresh(mesh, dram);
    const bool writes = write != NULL && (!write->wants_acknowledgement || router_takes(mesh, pe, PORT_DRAM, ACKNOWLEDGEMENT));
    const bool reads = dram->serves && dram->known <= mesh->now && router_takes(mesh, pe, PORT_DRAM, DATA);
    if (writes && (!reads || dram->read_last)) {
        dram->read_last = false;
        write_packet(mesh, chip);
    } else if (reads) {
        dram->read_last = true;
        read_packet(mesh, chip, dram->known);
    } else {
        return;
    }
    router_ask(mesh, pe, dram->free);
}

/* Allocated when first asked for. The system allocates pages at first access. */
uint8_t *dram_bytes(struct mesh *mesh, uint32_t chip)
{
    struct dram *dram = &mesh->noc->drams[chip];
    if (dram->bytes == NULL) {
        dram->bytes = needed(calloc(1, mesh->figures.dram_bytes));
    }
    return dram->bytes;
}

void drams_create(struct mesh *mesh, uint32_t chips)
{
    const struct figures *figures = &mesh->figures;
    mesh->noc->drams = needed(calloc(chips, sizeof *mesh->noc->drams));
    for (uint32_t chip = 0; chip < chips; chip++) {
        struct dram *dram = &mesh->noc->drams[chip];
        buffer_create(&dram->channels[DATA], figures->buffer_packets);
        buffer_create(&dram->channels[REQUEST], figures->dram_requests);
        dram->bank_row = needed(calloc(figures->dram_banks + 1, sizeof *dram->bank_row));
        dram->bank_free = needed(calloc(figures->dram_banks + 1, sizeof *dram->bank_free));
        close_banks(mesh, dram, 0);
        dram->refresh_at = figures->dram_refresh_interval;
        dram->read_last = true;
    }
}

void drams_free(struct mesh *mesh, uint32_t chips)
{
    for (uint32_t chip = 0; chip < chips; chip++) {
        free(mesh->noc->drams[chip].bytes);
        free(mesh->noc->drams[chip].bank_row);
        free(mesh->noc->drams[chip].bank_free);
    }
}
