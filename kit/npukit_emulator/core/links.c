/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Links into routers: the numbers of packets there, and planned faults. Hardware manual, section 4.8. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

enum { BITS_OF_A_FLIT = 144, BIT_OF_DRAM = 3, FIRST_BIT_OF_LIST = 5, BIT_BEHIND_LIST = 9 };
enum { FIRST_BIT_OF_X = 16, FIRST_BIT_OF_Y = 24, BIT_BEHIND_Y = 32 };

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

void link_plan(const struct mesh *mesh, struct transfer *transfer)
{
    struct harm *harm = &transfer->harm;
    if (harm->hop == NEVER) {
        return;
    }
    const uint64_t count = links_to(mesh, transfer, goal(transfer));
    harm->hop = harm->hop % count == count - 1 ? NEVER : harm->hop % count;
}

static bool is_struck(const struct packet *packet)
{
    if (packet->class != DATA || !packet->last || packet->transfer->harm.hop != packet->links) {
        return false;
    }
    for (uint32_t i = 0; i < packet->count; i++) {
        if (packet_place(packet, i) == goal(packet->transfer)) {
            return true;
        }
    }
    return false;
}

/* ---- packets with a wrong header ---- */

/* Whether this wrong bit makes the list longer than the packet. */
static bool ends_early(const struct packet *packet, uint32_t bit)
{
    return bit >= FIRST_BIT_OF_LIST && bit < BIT_BEHIND_LIST &&
           (packet->list_flits ^ 1U << (bit - FIRST_BIT_OF_LIST)) >= packet->flits;
}

/* Flip a bit. A header without list names the place, and the packet goes where it says. A packet with a list longer
 * than the packet goes to the PE at the router, which knows this with the last flit. */
static void damage(const struct mesh *mesh, uint32_t pe, struct packet *packet)
{
    const uint32_t bit = (uint32_t)(packet->transfer->harm.bit % (packet->flits * (uint64_t)BITS_OF_A_FLIT));
    packet->damaged = true;
    if (ends_early(packet, bit)) {
        packet->astray = true;
        packet->to = route_spot(&mesh->figures, pe);
        packet->to_dram = false;
        packet->list_flits = packet->flits - 1;
        return;
    }
    if (packet->list_flits > 0 || !(bit == BIT_OF_DRAM || (bit >= FIRST_BIT_OF_X && bit < BIT_BEHIND_Y))) {
        return;
    }
    const uint32_t place = packet_place(packet, 0);
    packet->astray = true;
    packet->to = route_spot(&mesh->figures, noc_router(mesh, place));
    packet->to_dram = noc_is_dram(place) != (bit == BIT_OF_DRAM);
    if (bit >= FIRST_BIT_OF_Y) {
        packet->to.y ^= 1U << (bit - FIRST_BIT_OF_Y);
    } else if (bit >= FIRST_BIT_OF_X) {
        packet->to.x ^= 1U << (bit - FIRST_BIT_OF_X);
    }
}

uint32_t link_stray(const struct mesh *mesh, uint32_t pe, const struct packet *packet)
{
    const struct figures *figures = &mesh->figures;
    const uint32_t columns = figures->columns * figures->chip_columns, rows = figures->rows * figures->chip_rows;
    struct spot to = packet->to;
    if (to.x >= columns) {
        to = (struct spot){columns - 1, route_spot(figures, pe).y};
    }
    to.y = to.y < rows ? to.y : rows - 1;
    return route_pe_at(figures, to);
}

/* ---- the receiver ---- */

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
        damage(mesh, pe, packet);
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
