/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Packets: a message cut into packets, and buffers of packets. Hardware manual, sections 4.3 and 4.4. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

/* ---- buffers ---- */

void buffer_create(struct buffer *buffer, uint32_t room)
{
    buffer->room = room;
    buffer->queue = needed(calloc(room + 1, sizeof *buffer->queue));
    buffer->free_from = needed(calloc(room + 1, sizeof *buffer->free_from));
}

bool buffer_has_room(const struct buffer *buffer, uint64_t cycle)
{
    for (uint32_t i = 0; i < buffer->room; i++) {
        if (buffer->free_from[i] <= cycle) {
            return true;
        }
    }
    return false;
}

/* The place to be free first, or with `taken` any taken place. */
static uint64_t *a_place(struct buffer *buffer, bool taken)
{
    uint64_t *best = &buffer->free_from[0];
    for (uint32_t i = 1; i < buffer->room; i++) {
        uint64_t *each = &buffer->free_from[i];
        best = taken ? (*each == NEVER ? each : best) : (*each < *best ? each : best);
    }
    return best;
}

void buffer_add(struct buffer *buffer, struct packet *packet, uint64_t from)
{
    *a_place(buffer, false) = NEVER;
    buffer->queue[buffer->count].packet = packet;
    buffer->queue[buffer->count++].from = from;
}

void buffer_skip(struct buffer *buffer, uint64_t free_from)
{
    *a_place(buffer, false) = free_from;
}

struct packet *buffer_first(const struct buffer *buffer, uint64_t cycle)
{
    return buffer->count > 0 && buffer->queue[0].from <= cycle ? buffer->queue[0].packet : NULL;
}

void buffer_remove(struct buffer *buffer, uint64_t free_from)
{
    *a_place(buffer, true) = free_from;
    buffer->count--;
    for (uint32_t i = 0; i < buffer->count; i++) {
        buffer->queue[i] = buffer->queue[i + 1];
    }
}

/* ---- packets of a message ---- */

uint32_t packet_place(const struct packet *packet, uint32_t destination)
{
    const struct transfer *transfer = packet->transfer;
    switch (packet->class) {
    case REQUEST:
        return transfer->source.pe;
    case ACKNOWLEDGEMENT:
        return transfer->owner->number;
    default:
        return transfer->destinations[packet->destinations[destination]].pe;
    }
}

struct packet *packet_of(struct transfer *transfer, enum packet_class class, uint32_t flits)
{
    struct packet *packet = needed(calloc(1, sizeof *packet + sizeof packet->destinations[0]));
    packet->transfer = transfer;
    packet->class = class;
    packet->flits = flits;
    packet->count = 1;
    return packet;
}

void cutter_begin(struct cutter *cutter, struct transfer *transfer, uint32_t first)
{
    const uint32_t left = transfer->destination_count - first;
    const bool nothing = transfer->rows == 0 || transfer->row_bytes == 0;
    *cutter = (struct cutter){transfer, first, left < MOST_DESTINATIONS ? left : MOST_DESTINATIONS, 0, 0, 0, false};
    cutter->row = nothing ? transfer->rows : 0;
}

static uint32_t list_flits(const struct cutter *cutter)
{
    const bool single = !cutter->transfer->multicast;
    return single ? 0 : (cutter->count + ENTRIES_OF_A_FLIT - 1) / ENTRIES_OF_A_FLIT;
}

struct packet *request_of(const struct cutter *cutter)
{
    struct packet *packet = packet_of(cutter->transfer, REQUEST, 2 + list_flits(cutter));
    packet->group = cutter->first;
    return packet;
}

/* Rows of the next packet, and the bytes of each. */
static void next_part(const struct cutter *cutter, uint32_t *rows, uint32_t *row_bytes)
{
    const struct figures *figures = &cutter->transfer->owner->mesh->figures;
    const struct transfer *transfer = cutter->transfer;
    const uint32_t flit = figures->port_bytes_per_cycle, most = figures->packet_flits - 1 - list_flits(cutter);
    const uint32_t row_flits = (transfer->row_bytes + flit - 1) / flit, left = transfer->rows - cutter->row;
    const bool whole = row_flits <= most;
    const uint32_t rest = transfer->row_bytes - cutter->offset, piece = rest < most * flit ? rest : most * flit;
    if (left == 0) {
        *rows = *row_bytes = 0;
    } else {
        *rows = !whole ? 1 : left < most / row_flits ? left : most / row_flits;
        *row_bytes = whole ? transfer->row_bytes : piece;
    }
}

static uint32_t data_flits(const struct cutter *cutter)
{
    const uint32_t flit = cutter->transfer->owner->mesh->figures.port_bytes_per_cycle;
    uint32_t rows, row_bytes;
    next_part(cutter, &rows, &row_bytes);
    return rows * ((row_bytes + flit - 1) / flit);
}

uint32_t cutter_flits(const struct cutter *cutter)
{
    return 1 + list_flits(cutter) + data_flits(cutter);
}

/* Go to the bytes behind a packet. */
static void advance(struct cutter *cutter, const struct packet *packet)
{
    cutter->offset += packet->row_bytes;
    if (cutter->offset >= cutter->transfer->row_bytes) {
        cutter->offset = 0;
        cutter->row += packet->rows;
    }
    cutter->ended = cutter->row >= cutter->transfer->rows;
}

struct packet *cutter_next(struct cutter *cutter)
{
    struct packet *packet = needed(calloc(1, sizeof *packet + cutter->count * sizeof packet->destinations[0]));
    packet->transfer = cutter->transfer;
    packet->class = DATA;
    packet->number = cutter->packets++;
    packet->flits = cutter_flits(cutter);
    packet->list_flits = list_flits(cutter);
    packet->data_flits = data_flits(cutter);
    packet->row = cutter->row;
    packet->offset = cutter->offset;
    next_part(cutter, &packet->rows, &packet->row_bytes);
    packet->bytes = packet->rows * packet->row_bytes;
    for (uint32_t i = 0; i < cutter->count; i++) {
        packet->destinations[packet->count++] = cutter->first + i;
    }
    advance(cutter, packet);
    packet->last = cutter->ended;
    packet->wants_acknowledgement = packet->last && noc_is_dram(cutter->transfer->destinations[0].pe);
    return packet;
}
