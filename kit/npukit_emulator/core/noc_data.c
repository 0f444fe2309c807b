/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Data of packets: bytes read from the source, and bytes written at destinations. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "network.h"

/* The end of a message's last packet at a destination. */
struct arrival {
    struct transfer *transfer;
    uint32_t destination;
    uint32_t pe, output; /* the output of the PE's router */
    enum note_kind kind; /* NOTE_ARRIVED, or a planned fault */
};

/* ---- data of the source: row after row. Overlapping rows may add up to more bytes than the memory has: the data is
 * then the memory from the lowest byte to the highest ---- */

static int64_t distance(int64_t stride)
{
    return stride < 0 ? -stride : stride;
}

static bool overlap(const struct transfer *transfer)
{
    return transfer->rows > 0 && distance(transfer->source_stride) < (int64_t)transfer->row_bytes;
}

/* The lowest address of `rows` rows. */
static int64_t lowest(uint32_t address, uint32_t rows, int64_t stride)
{
    return stride < 0 ? address + ((int64_t)rows - 1) * stride : address;
}

static int64_t lowest_of_source(const struct transfer *transfer)
{
    return lowest(transfer->source.address, transfer->rows, transfer->source_stride);
}

static size_t data_bytes(const struct transfer *transfer)
{
    const size_t apart = overlap(transfer) ? (size_t)distance(transfer->source_stride) : transfer->row_bytes;
    return transfer->rows == 0 ? 0 : (transfer->rows - 1) * apart + transfer->row_bytes;
}

static uint8_t *row_data(const struct transfer *transfer, uint32_t row)
{
    if (!overlap(transfer)) {
        return transfer->data + (size_t)row * transfer->row_bytes;
    }
    return transfer->data + (transfer->source.address + (int64_t)row * transfer->source_stride - lowest_of_source(transfer));
}

/* Fault if the source has not been written. */
static void look_at_source(struct mesh *mesh, const struct transfer *transfer)
{
    const struct place source = transfer->source;
    for (uint32_t row = 0; row < transfer->rows && !noc_is_dram(source.pe); row++) {
        const uint32_t address = (uint32_t)(source.address + (int64_t)row * transfer->source_stride);
        if (!shadow_is_written(&mesh->pes[source.pe], address, transfer->row_bytes)) {
            mesh->fault_other = source.pe;
            pe_fault_at(transfer->owner, FAULT_DMA_UNWRITTEN, address, transfer->owner->pc);
            return;
        }
    }
}

static void take_data(struct mesh *mesh, struct transfer *transfer)
{
    uint64_t bytes;
    if (transfer->data != NULL) {
        return;
    }
    races_read_source(transfer);
    if (transfer->owner->written != NULL && transfer->row_bytes > 0) {
        look_at_source(mesh, transfer);
    }
    const uint8_t *memory = noc_memory(mesh, transfer->source.pe, &bytes);
    transfer->data = needed(malloc(data_bytes(transfer) + 1));
    if (overlap(transfer)) {
        memcpy(transfer->data, memory + lowest_of_source(transfer), data_bytes(transfer));
        return;
    }
    for (uint32_t row = 0; row < transfer->rows; row++) {
        memcpy(row_data(transfer, row), memory + transfer->source.address + (int64_t)row * transfer->source_stride,
               transfer->row_bytes);
    }
}

/* Whether a row would overwrite running code. If so, the PE of the DMA faults. */
static bool writes_code(struct mesh *mesh, const struct transfer *transfer, struct place to, int64_t address)
{
    const uint32_t end = (uint32_t)address + transfer->row_bytes;
    if (noc_is_dram(to.pe) || transfer->row_bytes == 0 || !watch_is_code(mesh, to.pe, (uint32_t)address, end)) {
        return false;
    }
    mesh->fault_other = to.pe;
    pe_fault_at(transfer->owner, FAULT_DMA_CODE, (uint32_t)address, transfer->owner->pc);
    return true;
}

/* Write the part of a row that later rows do not overwrite: all of the last row, otherwise the bytes before or behind
 * the next row. With a network in RTL the bytes are there, and are compared. */
static void put_row(struct mesh *mesh, const struct transfer *transfer, uint32_t row, struct place place)
{
    uint64_t size;
    const int64_t bytes = transfer->row_bytes, stride = transfer->destination_stride;
    const bool covered = row + 1 < transfer->rows && stride > -bytes && stride < bytes;
    const int64_t from = covered && stride < 0 ? bytes + stride : 0;
    const int64_t end = covered && stride >= 0 ? stride : bytes;
    const uint8_t *data = row_data(transfer, row) + from;
    if (mesh->network != NULL) {
        network_compare(mesh, place.pe, place.address + (uint32_t)from, data, (uint32_t)(end - from));
    } else {
        memcpy(noc_memory(mesh, place.pe, &size) + place.address + from, data, (size_t)(end - from));
    }
}

static void put_data(struct mesh *mesh, const struct transfer *transfer, struct place to)
{
    for (uint32_t row = 0; row < transfer->rows && transfer->row_bytes > 0; row++) {
        const int64_t address = to.address + (int64_t)row * transfer->destination_stride;
        if (writes_code(mesh, transfer, to, address)) {
            return;
        }
        put_row(mesh, transfer, row, (struct place){to.pe, (uint32_t)address});
        if (!noc_is_dram(to.pe)) {
            shadow_written(&mesh->pes[to.pe], (uint32_t)address, transfer->row_bytes);
        }
    }
    if (!noc_is_dram(to.pe) && transfer->rows > 0) {
        const int64_t low = lowest(to.address, transfer->rows, transfer->destination_stride);
        const int64_t high = low + (int64_t)(transfer->rows - 1) * distance(transfer->destination_stride);
        blocks_forget(&mesh->pes[to.pe], (uint32_t)low, (uint32_t)high + transfer->row_bytes);
        network_landed(mesh, to, transfer);
    }
}

static void release(struct transfer *transfer)
{
    if (transfer->done && transfer->on_the_way == 0) {
        races_end(transfer);
        free(transfer->data);
        free(transfer->destinations);
        free(transfer);
    }
}

void noc_abandon(struct transfer *transfer)
{
    transfer->done = true;
    release(transfer);
}

void noc_note(struct mesh *mesh, enum note_kind kind, const struct transfer *transfer, struct place to)
{
    const uint32_t bytes = transfer->rows * transfer->row_bytes;
    notes_add(mesh, (struct note){0, kind, transfer->owner->number, transfer->source.pe, to.pe, to.address, bytes,
                                  transfer->destination_flag, transfer->tag});
}

static void deliver(struct mesh *mesh, struct transfer *transfer, struct place place)
{
    take_data(mesh, transfer);
    noc_note(mesh, NOTE_ARRIVED, transfer, place);
    put_data(mesh, transfer, place);
    mesh->messages += mesh->network != NULL && mesh->alone_pes == 0 ? 1 : 0;
    races_land(transfer, place);
    trace_record(mesh, (struct trace_record){transfer->left_at, mesh->now, TRACE_TRANSFER, transfer->owner->number,
                                             transfer->source.pe, place.pe, transfer->rows * transfer->row_bytes,
                                             (uint32_t)(transfer->left_at - transfer->asked_at)});
    noc_count_flag(mesh, place.pe, transfer->destination_flag, transfer, true);
}

/* ---- ends of packets, and faults on the last link: hardware manual, section 4.8 ---- */

/* The receiver at an output of a router finds a packet with a wrong number or CRC, and throws later ones away. */
static void close_output(struct mesh *mesh, uint32_t pe, uint32_t output, uint32_t error)
{
    mesh->noc->routers[pe].at_output[output].closed = true;
    dma_report(&mesh->pes[pe], error);
}

static void suffer(struct mesh *mesh, const struct arrival *arrival)
{
    noc_note(mesh, arrival->kind, arrival->transfer, arrival->transfer->destinations[arrival->destination]);
    if (arrival->kind != NOTE_LOST) {
        close_output(mesh, arrival->pe, arrival->output, arrival->kind == NOTE_DAMAGED ? NOC_ERROR_CRC : NOC_ERROR_NUMBER);
    }
}

static void on_arrival(struct mesh *mesh, void *subject)
{
    struct arrival *arrival = subject;
    struct transfer *transfer = arrival->transfer;
    if (arrival->kind == NOTE_ARRIVED) {
        deliver(mesh, transfer, transfer->destinations[arrival->destination]);
    } else {
        suffer(mesh, arrival);
    }
    transfer->on_the_way--;
    free(arrival);
    release(transfer);
}

static void arrive_at(struct mesh *mesh, struct arrival what, uint64_t time)
{
    struct arrival *arrival = needed(malloc(sizeof *arrival));
    *arrival = what;
    events_post(mesh, time, what.transfer->owner->number, on_arrival, arrival);
}

/* Whether planned faults strike a packet on the last link before a place. */
static bool is_harmed(const struct packet *packet, uint32_t place)
{
    const struct harm *harm = &packet->transfer->harm;
    return harm->hop == NEVER && link_strikes(packet) && (harm->place == ANY_PE || harm->place == place);
}

static enum note_kind kind_of(const struct packet *packet, bool harmed)
{
    const struct harm *harm = &packet->transfer->harm;
    return harmed && harm->lost ? NOTE_LOST : packet->damaged || (harmed && harm->flips) ? NOTE_DAMAGED : NOTE_ARRIVED;
}

/* A packet at a destination: the end of a message, a planned fault, or neither. Later packets of the link are
 * thrown away from here on, though an error shows later. Returns whether all is well. */
static bool end_at(struct mesh *mesh, const struct packet *packet, struct arrival arrival, uint64_t time)
{
    struct transfer *transfer = packet->transfer;
    struct receiver *receiver = &mesh->noc->routers[arrival.pe].at_output[arrival.output];
    const bool harmed = is_harmed(packet, transfer->destinations[arrival.destination].pe);
    arrival.kind = kind_of(packet, harmed);
    receiver->misses = receiver->misses || arrival.kind == NOTE_LOST;
    receiver->closed = receiver->closed || arrival.kind == NOTE_DAMAGED;
    if (packet->last || arrival.kind != NOTE_ARRIVED) {
        transfer->on_the_way += packet->last ? 0 : 1;
        arrive_at(mesh, arrival, time);
    }
    if (arrival.kind == NOTE_ARRIVED && harmed && transfer->harm.again_after > 0) {
        transfer->on_the_way++;
        arrival.kind = NOTE_AGAIN;
        arrive_at(mesh, arrival, time + transfer->harm.again_after);
    }
    return arrival.kind == NOTE_ARRIVED || arrival.kind == NOTE_AGAIN;
}

/* Of several entries of a list with the same PE only the first counts. */
static bool is_first(const struct packet *packet, uint32_t destination)
{
    for (uint32_t i = 0; i < destination; i++) {
        if (packet_place(packet, i) == packet_place(packet, destination)) {
            return false;
        }
    }
    return true;
}

bool noc_end_packet(struct mesh *mesh, uint32_t pe, struct packet *packet, uint32_t output, uint64_t time)
{
    const struct receiver *receiver = &mesh->noc->routers[pe].at_output[output];
    bool well = true;
    if (receiver->misses && !receiver->closed) {
        close_output(mesh, pe, output, NOC_ERROR_NUMBER);
    }
    for (uint32_t i = 0; i < packet->count; i++) {
        if (is_first(packet, i) && !receiver->closed) {
            const struct arrival arrival = {packet->transfer, packet->destinations[i], pe, output, NOTE_ARRIVED};
            well = end_at(mesh, packet, arrival, time) && well;
        } else if (packet->last) {
            packet->transfer->on_the_way--;
        }
    }
    return well && !receiver->closed;
}

static void on_lost(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    (void)mesh;
    transfer->on_the_way--;
    release(transfer);
}

void noc_lose(struct mesh *mesh, struct packet *packet, uint64_t time)
{
    struct transfer *transfer = packet->transfer;
    if (packet->last) {
        transfer->on_the_way -= packet->count - 1;
        events_post(mesh, time, transfer->owner->number, on_lost, transfer);
    }
    free(packet);
}

uint64_t noc_begin(struct mesh *mesh, struct transfer *transfer)
{
    transfer->harm = (struct harm){.place = ANY_PE, .hop = NEVER, .part = NEVER};
    transfer->left_at = mesh->now;
    for (uint32_t i = 0; i < transfer->destination_count; i++) {
        noc_note(mesh, NOTE_SENT, transfer, transfer->destinations[i]);
    }
    inject_packet(mesh, transfer);
    link_plan(mesh, transfer);
    if (transfer->harm.late_by > 0) {
        noc_note(mesh, NOTE_LATE, transfer, transfer->destinations[0]);
    }
    return transfer->harm.late_by;
}

static void on_read(struct mesh *mesh, void *subject)
{
    take_data(mesh, subject);
}

void noc_read_at(struct mesh *mesh, struct transfer *transfer, uint64_t time)
{
    events_post(mesh, time, transfer->owner->number, on_read, transfer);
}

static void on_done(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    (void)mesh;
    dma_done(transfer);
    noc_abandon(transfer);
}

void noc_done_at(struct mesh *mesh, struct transfer *transfer, uint64_t time)
{
    events_post(mesh, time, transfer->owner->number, on_done, transfer);
}
