/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Links into routers: the numbers of packets there, and planned faults. Hardware manual, section 4.8. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

enum { BITS_OF_A_FLIT = 144 };

enum fate { PASSES, LOST, THROWN_AWAY };

/* An error that shows at a router in a later cycle. */
struct finding {
    uint32_t pe;
    struct receiver *receiver;
};

/* ---- which link is struck ---- */

/* The destination whose way has the struck link. */
static uint32_t goal(const struct transfer *transfer)
{
    return transfer->harm.place != ANY_PE ? transfer->harm.place : transfer->destinations[0].pe;
}

/* Links from the source to a destination, the last into its PE or DRAM. */
static uint64_t links_to(const struct mesh *mesh, const struct transfer *transfer, uint32_t place)
{
    const uint32_t end = noc_router(mesh, place);
    uint64_t count = noc_is_dram(transfer->source.pe) ? 2 : 1;
    for (uint32_t at = noc_router(mesh, transfer->source.pe); at != end; count++) {
        at = route_step(&mesh->figures, at, end).next;
    }
    return count;
}

/* Packets of a message to a destination. */
static uint64_t packets_to(struct transfer *transfer, uint32_t place)
{
    struct cutter cutter;
    uint32_t first = 0;
    while (transfer->destinations[first].pe != place) {
        first++;
    }
    cutter_begin(&cutter, transfer, first - first % MOST_DESTINATIONS);
    while (!cutter.ended) {
        free(cutter_next(&cutter));
    }
    return cutter.packets;
}

void link_plan(const struct mesh *mesh, struct transfer *transfer)
{
    struct harm *harm = &transfer->harm;
    if (harm->hop != NEVER) {
        const uint64_t count = links_to(mesh, transfer, goal(transfer));
        harm->hop = harm->hop % count == count - 1 ? NEVER : harm->hop % count;
    }
    if (harm->part != NEVER) {
        harm->part %= packets_to(transfer, goal(transfer));
    }
}

bool link_strikes(const struct packet *packet)
{
    const uint64_t part = packet->transfer->harm.part;
    return packet->class == DATA && (part == NEVER ? packet->last : part == packet->number);
}

static bool is_struck(const struct packet *packet)
{
    if (!link_strikes(packet) || packet->transfer->harm.hop != packet->links) {
        return false;
    }
    for (uint32_t i = 0; i < packet->count; i++) {
        if (packet_place(packet, i) == goal(packet->transfer)) {
            return true;
        }
    }
    return false;
}

/* ---- the receiver ---- */

/* Flip a bit. The input finds a wrong header or list: the packet leaves the network here, and later data is thrown away. */
static void damage(struct receiver *receiver, uint32_t pe, struct packet *packet)
{
    const uint64_t bit = packet->transfer->harm.bit % (packet->flits * (uint64_t)BITS_OF_A_FLIT);
    const uint32_t flit = (uint32_t)(bit / BITS_OF_A_FLIT);
    packet->damaged = true;
    if (flit <= packet->list_flits) {
        packet->astray = true;
        packet->found_at = pe;
        packet->list_flits = flit;
        packet->data_flits = 0;
        receiver->closed = true;
    }
}

static void on_finding(struct mesh *mesh, void *subject)
{
    const struct finding *finding = subject;
    finding->receiver->closed = true;
    if (!finding->receiver->told) {
        finding->receiver->told = true;
        dma_report(&mesh->pes[finding->pe], NOC_ERROR_NUMBER);
    }
    free(subject);
}

static void find_at(struct mesh *mesh, struct finding what, uint64_t time)
{
    struct finding *finding = needed(malloc(sizeof *finding));
    *finding = what;
    events_post(mesh, time, what.pe, on_finding, finding);
}

static void note(struct mesh *mesh, enum note_kind kind, const struct packet *packet)
{
    const struct transfer *transfer = packet->transfer;
    noc_note(mesh, kind, transfer, transfer->destinations[packet->destinations[0]]);
}

static enum fate fate_of(struct mesh *mesh, uint32_t pe, uint32_t port, struct packet *packet)
{
    struct receiver *receiver = &mesh->noc->routers[pe].at_input[port];
    const struct harm *harm = &packet->transfer->harm;
    const bool struck = is_struck(packet);
    packet->links++;
    if (struck && harm->lost) {
        note(mesh, NOTE_LOST, packet);
        receiver->misses = true;
        return LOST;
    }
    if (receiver->misses && !receiver->closed) {
        receiver->closed = true;
        find_at(mesh, (struct finding){pe, receiver}, mesh->now + 1);
    }
    if (receiver->closed && packet->class == DATA) {
        return THROWN_AWAY;
    }
    if (struck && harm->again_after > 0) {
        note(mesh, NOTE_AGAIN, packet);
        find_at(mesh, (struct finding){pe, receiver}, mesh->now + harm->again_after);
    }
    if (struck && harm->flips) {
        note(mesh, NOTE_DAMAGED, packet);
        damage(receiver, pe, packet);
    }
    return PASSES;
}

void link_carry(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel, struct packet *packet, uint64_t from)
{
    struct buffer *buffer = router_input(mesh, pe, port, channel);
    const uint64_t begin = from - packet->list_flits, end = begin + packet->flits;
    const enum fate fate = mesh->injection_count == 0 ? PASSES : fate_of(mesh, pe, port, packet);
    if (fate == PASSES) {
        buffer_add(buffer, packet, begin + packet->list_flits);
        router_ask(mesh, pe, begin + packet->list_flits);
        return;
    }
    buffer_skip(buffer, fate == LOST ? NEVER : end);
    if (fate == THROWN_AWAY) {
        router_ask_before(mesh, pe, port, end);
    }
    noc_lose(mesh, packet, end);
}
