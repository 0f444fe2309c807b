/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Packets: the way of their heads from router to router, and the links and DRAM taken. Hardware manual, section 4.3. */
#include <stdlib.h>

#include "need.h"
#include "noc_state.h"

/* A packet's head, for some of the transfer's destinations. */
struct head {
    struct transfer *transfer;
    uint32_t at;
    uint64_t pace; /* cycles of the slowest link or DRAM so far */
    uint32_t count;
    uint32_t destinations[];
};

/* ---- taking of links and DRAM ---- */

static uint64_t taken(const struct mesh *mesh, const struct transfer *transfer, uint64_t bytes_per_100_cycles)
{
    const uint64_t bytes = 100 * transfer->flits * mesh->figures.port_bytes_per_cycle;
    return (bytes + bytes_per_100_cycles - 1) / bytes_per_100_cycles;
}

/* Take a link or DRAM for `cycles`, from the present cycle or as soon as free. Returns the first cycle. */
static uint64_t grant(const struct mesh *mesh, uint64_t *free_at, uint64_t cycles)
{
    const uint64_t from = *free_at > mesh->now ? *free_at : mesh->now;
    *free_at = from + cycles;
    return from;
}

static uint64_t grant_dram(struct mesh *mesh, uint32_t place, uint64_t cycles)
{
    const uint32_t chip = place - DRAM_OF_CHIP;
    const uint64_t from = grant(mesh, &mesh->noc->dram_free[chip], cycles);
    trace_record(mesh, (struct trace_record){from, from + cycles, TRACE_DRAM, chip, 0, 0, 0, 0});
    return from;
}

static uint64_t *link_of(const struct mesh *mesh, uint32_t at, struct step step)
{
    if (!step.leaves_chip) {
        return &mesh->noc->link_free[at * DIRECTIONS + step.direction];
    }
    const uint32_t links = mesh->figures.chip_links_per_border;
    uint64_t *border = &mesh->noc->border_free[(route_chip(&mesh->figures, at) * DIRECTIONS + step.direction) * links];
    uint64_t *first = border;
    for (uint32_t i = 1; i < links; i++) {
        first = border[i] < *first ? &border[i] : first;
    }
    return first;
}

/* ---- routes of heads ---- */

static void on_head(struct mesh *mesh, void *subject);

static struct head *new_head(struct transfer *transfer, uint32_t at, uint64_t pace)
{
    struct head *head = needed(malloc(sizeof *head + transfer->destination_count * sizeof head->destinations[0]));
    head->transfer = transfer;
    head->at = at;
    head->pace = pace;
    head->count = 0;
    return head;
}

static void post_head(struct mesh *mesh, struct head *head, uint64_t time)
{
    events_post(mesh, time, head->transfer->owner->number, on_head, head);
}

/* The head is at a destination's router. */
static void reach(struct mesh *mesh, const struct head *head, uint32_t destination)
{
    struct transfer *transfer = head->transfer;
    const uint32_t place = transfer->destinations[destination].pe;
    uint64_t done = mesh->now + head->pace;
    if (noc_is_dram(place)) {
        const uint64_t cycles = taken(mesh, transfer, 100 * mesh->figures.dram_bytes_per_cycle);
        const uint64_t from = grant_dram(mesh, place, cycles);
        done = from + (cycles > head->pace ? cycles : head->pace);
    } else {
        port_use(&mesh->pes[place], done - transfer->flits, transfer->flits);
    }
    if (head->at == noc_router(mesh, transfer->source.pe)) { /* no link lies between DRAM and the PE at its router */
        transfer->source_done_at = done > transfer->source_done_at ? done : transfer->source_done_at;
    }
    noc_arrive_at(mesh, transfer, destination, done);
}

static void trace_link(struct mesh *mesh, const struct head *head, struct step step, const uint64_t *link, uint64_t from)
{
    const struct transfer *transfer = head->transfer;
    const uint32_t lane =
        step.leaves_chip ? (uint32_t)(link - mesh->noc->border_free) % mesh->figures.chip_links_per_border : 0;
    trace_record(mesh, (struct trace_record){from, *link, TRACE_LINK, head->at, step.next, lane,
                                             transfer->rows * transfer->row_bytes, 0});
}

/* Send the head across a link, with the destinations in this direction. Returns the cycle at which the head enters the
 * link. */
static uint64_t cross(struct mesh *mesh, const struct head *head, struct step step, struct head *beyond)
{
    const struct figures *figures = &mesh->figures;
    const uint64_t width =
        step.leaves_chip ? figures->chip_link_bytes_per_100_cycles : 100 * figures->port_bytes_per_cycle;
    const uint64_t cycles = taken(mesh, head->transfer, width);
    uint64_t *link = link_of(mesh, head->at, step);
    const uint64_t from = grant(mesh, link, cycles);
    trace_link(mesh, head, step, link, from);
    beyond->pace = cycles > head->pace ? cycles : head->pace;
    struct transfer *transfer = head->transfer;
    if (head->at == noc_router(mesh, transfer->source.pe)) {
        transfer->source_done_at = from + cycles > transfer->source_done_at ? from + cycles : transfer->source_done_at;
    }
    post_head(mesh, beyond, from + noc_hop_cycles(mesh, step));
    return from;
}

static struct step step_to(const struct mesh *mesh, const struct head *head, uint32_t destination)
{
    return route_step(&mesh->figures, head->at, noc_router(mesh, head->transfer->destinations[destination].pe));
}

/* Send a head towards the first destination, with all destinations in the same direction. Returns the cycle at which
 * the head enters the link. */
static uint64_t branch(struct mesh *mesh, struct head *head)
{
    const struct step step = step_to(mesh, head, head->destinations[0]);
    struct head *beyond = new_head(head->transfer, step.next, head->pace);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < head->count; i++) {
        const uint32_t destination = head->destinations[i];
        if (step_to(mesh, head, destination).direction == step.direction) {
            beyond->destinations[beyond->count++] = destination;
        } else {
            head->destinations[kept++] = destination;
        }
    }
    head->count = kept;
    return cross(mesh, head, step, beyond);
}

/* Reach the destinations at this router. False if there are none. */
static bool reach_those_here(struct mesh *mesh, struct head *head)
{
    const uint32_t before = head->count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < head->count; i++) {
        const uint32_t destination = head->destinations[i];
        if (noc_router(mesh, head->transfer->destinations[destination].pe) == head->at) {
            reach(mesh, head, destination);
        } else {
            head->destinations[kept++] = destination;
        }
    }
    head->count = kept;
    return kept < before;
}

static void read_through_port(struct mesh *mesh, struct transfer *transfer, uint64_t from)
{
    if (!noc_is_dram(transfer->source.pe) && from != NEVER) {
        port_use(&mesh->pes[transfer->source.pe], from, transfer->flits);
    }
}

static void on_head(struct mesh *mesh, void *subject)
{
    struct head *head = subject;
    struct transfer *transfer = head->transfer;
    const bool leaves_source = head->at == noc_router(mesh, transfer->source.pe);
    uint64_t first = reach_those_here(mesh, head) ? mesh->now : NEVER;
    while (head->count > 0) {
        const uint64_t from = branch(mesh, head);
        first = from < first ? from : first;
    }
    if (leaves_source) {
        read_through_port(mesh, transfer, first);
        noc_source_done_at(mesh, transfer, transfer->source_done_at);
    }
    free(head);
}

/* A copy within a memory takes the port twice. */
static void copy_in_place(struct mesh *mesh, struct transfer *transfer, uint32_t destination)
{
    const uint32_t place = transfer->source.pe;
    uint64_t done = mesh->now + 2 * transfer->flits;
    if (noc_is_dram(place)) {
        const uint64_t cycles = 2 * taken(mesh, transfer, 100 * mesh->figures.dram_bytes_per_cycle);
        done = grant_dram(mesh, place, cycles) + cycles;
    } else {
        port_use(&mesh->pes[place], mesh->now, 2 * transfer->flits);
    }
    transfer->source_done_at = done > transfer->source_done_at ? done : transfer->source_done_at;
    noc_arrive_at(mesh, transfer, destination, done);
}

/* The cycle at which the head leaves. Takes the DRAM, if the source is there. */
static uint64_t leave_source(struct mesh *mesh, struct transfer *transfer, struct head *head)
{
    const uint32_t place = transfer->source.pe;
    if (head->count == 0 || !noc_is_dram(place)) {
        return mesh->now;
    }
    const uint64_t cycles = taken(mesh, transfer, 100 * mesh->figures.dram_bytes_per_cycle);
    const uint64_t from = grant_dram(mesh, place, cycles);
    head->pace = cycles > head->pace ? cycles : head->pace;
    transfer->source_done_at = from + cycles > transfer->source_done_at ? from + cycles : transfer->source_done_at;
    return from;
}

static void depart(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    struct head *head = new_head(transfer, noc_router(mesh, transfer->source.pe), transfer->flits);
    transfer->on_the_way = transfer->destination_count;
    transfer->source_done_at = mesh->now;
    transfer->left_at = mesh->now;
    for (uint32_t i = 0; i < transfer->destination_count; i++) {
        noc_note(mesh, NOTE_SENT, transfer, transfer->destinations[i]);
        if (transfer->destinations[i].pe == transfer->source.pe) {
            copy_in_place(mesh, transfer, i);
        } else {
            head->destinations[head->count++] = i;
        }
    }
    post_head(mesh, head, leave_source(mesh, transfer, head));
}

void noc_send(struct mesh *mesh, struct transfer *transfer)
{
    transfer->harm = (struct harm){.place = ANY_PE};
    inject_packet(mesh, transfer);
    if (transfer->harm.late_by == 0) {
        depart(mesh, transfer);
        return;
    }
    noc_note(mesh, NOTE_LATE, transfer, transfer->destinations[0]);
    events_post(mesh, mesh->now + transfer->harm.late_by, transfer->owner->number, depart, transfer);
}
