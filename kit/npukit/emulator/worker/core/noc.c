/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The network-on-chip: heads of packets that go from router to router, links that are taken for a while, DRAM.
 * Hardware manual, section 4.3. */
#include "noc.h"

#include <stdlib.h>
#include <string.h>

#include "route.h"

struct noc {
    uint64_t *link_free;   /* [PE][direction] */
    uint64_t *border_free; /* [chip][direction][link] */
    uint64_t *dram_free;   /* [chip] */
    uint8_t **dram;        /* [chip], made at first use */
    bool *dead_link;       /* [PE][direction] */
    bool *dead_pe;
};

/* The head of a packet, on its way to some of the transfer's destinations. */
struct head {
    struct transfer *transfer;
    uint32_t at;
    uint64_t pace; /* cycles for which the slowest thing passed so far is taken */
    uint32_t count;
    uint32_t destinations[];
};

/* A destination whose last byte comes in. */
struct arrival {
    struct transfer *transfer;
    uint32_t destination;
    bool again; /* for the second time */
};

static uint32_t chips(const struct mesh *mesh)
{
    return mesh->figures.chip_columns * mesh->figures.chip_rows;
}

const char *noc_create(struct mesh *mesh)
{
    struct noc *noc = mesh->noc = calloc(1, sizeof *noc);
    noc->link_free = calloc((size_t)mesh->pe_count * DIRECTIONS, sizeof *noc->link_free);
    noc->border_free = calloc((size_t)chips(mesh) * DIRECTIONS * mesh->figures.chip_links_per_border, sizeof(uint64_t));
    noc->dram_free = calloc(chips(mesh), sizeof *noc->dram_free);
    noc->dram = calloc(chips(mesh), sizeof *noc->dram);
    noc->dead_link = calloc((size_t)mesh->pe_count * DIRECTIONS, sizeof *noc->dead_link);
    noc->dead_pe = calloc(mesh->pe_count, sizeof *noc->dead_pe);
    return noc->dead_pe != NULL ? NULL : "out of memory";
}

void noc_set_dead(struct mesh *mesh, uint32_t pe, uint32_t other)
{
    const struct step there = route_step(&mesh->figures, pe, other);
    const struct step back = route_step(&mesh->figures, other, pe);
    mesh->noc->dead_link[pe * DIRECTIONS + there.direction] = true;
    mesh->noc->dead_link[other * DIRECTIONS + back.direction] = true;
}

void noc_set_pe_dead(struct mesh *mesh, uint32_t pe)
{
    mesh->noc->dead_pe[pe] = true;
}

static bool is_dram(uint32_t place)
{
    return (place & DRAM_OF_CHIP) != 0;
}

bool noc_pe_exists(const struct mesh *mesh, uint32_t pe)
{
    if (is_dram(pe)) {
        return pe - DRAM_OF_CHIP < chips(mesh) && mesh->figures.dram_bytes > 0;
    }
    return pe < mesh->pe_count && !mesh->noc->dead_pe[pe];
}

/* The PE at whose router a place is. */
static uint32_t router(const struct mesh *mesh, uint32_t place)
{
    return is_dram(place) ? (place - DRAM_OF_CHIP) * mesh->figures.columns * mesh->figures.rows : place;
}

bool noc_reaches(const struct mesh *mesh, uint32_t from, uint32_t to)
{
    uint32_t at = router(mesh, from);
    const uint32_t end = router(mesh, to);
    while (at != end) {
        const struct step step = route_step(&mesh->figures, at, end);
        if (mesh->noc->dead_link[at * DIRECTIONS + step.direction]) {
            return false;
        }
        at = step.next;
    }
    return true;
}

uint32_t noc_distance(const struct pe *a, const struct pe *b)
{
    uint32_t hops = 0;
    for (uint32_t at = a->number; at != b->number; hops++) {
        at = route_step(&a->mesh->figures, at, b->number).next;
    }
    return hops;
}

uint8_t *noc_memory(struct mesh *mesh, uint32_t place, uint64_t *bytes)
{
    if (!is_dram(place)) {
        *bytes = mesh->figures.sram_bytes;
        return mesh->pes[place].sram;
    }
    uint8_t **dram = &mesh->noc->dram[place - DRAM_OF_CHIP];
    if (*dram == NULL) {
        *dram = calloc(1, mesh->figures.dram_bytes); /* the system gives pages as they are touched */
    }
    *bytes = *dram == NULL ? 0 : mesh->figures.dram_bytes;
    return *dram;
}

static uint32_t hop_cycles(const struct mesh *mesh, struct step step)
{
    return step.leaves_chip ? mesh->figures.chip_hop_cycles : mesh->figures.hop_cycles;
}

uint64_t noc_request_cycles(const struct mesh *mesh, uint32_t from, uint32_t place)
{
    uint64_t cycles = is_dram(place) ? mesh->figures.dram_latency_cycles : 0;
    const uint32_t end = router(mesh, place);
    for (uint32_t at = from; at != end;) {
        const struct step step = route_step(&mesh->figures, at, end);
        cycles += hop_cycles(mesh, step);
        at = step.next;
    }
    return cycles;
}

void noc_count_flag(struct mesh *mesh, uint32_t pe, uint32_t flag)
{
    if (is_dram(pe) || flag >= mesh->figures.flags) {
        return;
    }
    mesh->pes[pe].flags[flag]++;
    pe_set_event(&mesh->pes[pe]);
}

/* ---- how long things are taken ---- */

static uint64_t taken(const struct mesh *mesh, const struct transfer *transfer, uint32_t bytes_per_cycle)
{
    const uint64_t bytes = transfer->flits * mesh->figures.port_bytes_per_cycle;
    return (bytes + bytes_per_cycle - 1) / bytes_per_cycle;
}

/* Take a thing for so many cycles, from now or as soon as it is free. Returns when that is. */
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

/* ---- the data ---- */

static void on_arrival(struct mesh *mesh, void *subject);

static void take_data(struct mesh *mesh, struct transfer *transfer)
{
    uint64_t bytes;
    if (transfer->data != NULL) {
        return;
    }
    const uint8_t *memory = noc_memory(mesh, transfer->source.pe, &bytes);
    transfer->data = malloc((size_t)transfer->rows * transfer->row_bytes + 1);
    for (uint32_t row = 0; row < transfer->rows; row++) {
        memcpy(transfer->data + (size_t)row * transfer->row_bytes,
               memory + transfer->source.address + (int64_t)row * transfer->source_stride, transfer->row_bytes);
    }
}

/* Whether a row would come to lie on code that runs: then the PE that sends it is at fault. */
static bool writes_code(struct mesh *mesh, const struct transfer *transfer, struct place to, int64_t address)
{
    const uint32_t end = (uint32_t)address + transfer->row_bytes;
    if (is_dram(to.pe) || transfer->row_bytes == 0 || !watch_is_code(mesh, to.pe, (uint32_t)address, end)) {
        return false;
    }
    mesh->fault_other = to.pe;
    pe_fault_at(transfer->owner, FAULT_DMA_CODE, (uint32_t)address, transfer->owner->pc);
    return true;
}

static void put_data(struct mesh *mesh, const struct transfer *transfer, struct place to)
{
    uint64_t bytes;
    uint8_t *memory = noc_memory(mesh, to.pe, &bytes);
    for (uint32_t row = 0; row < transfer->rows; row++) {
        const int64_t address = to.address + (int64_t)row * transfer->destination_stride;
        if (writes_code(mesh, transfer, to, address)) {
            return;
        }
        memcpy(memory + address, transfer->data + (size_t)row * transfer->row_bytes, transfer->row_bytes);
        if (!is_dram(to.pe)) {
            blocks_forget(&mesh->pes[to.pe], (uint32_t)address, (uint32_t)address + transfer->row_bytes);
        }
    }
}

static void release(struct transfer *transfer)
{
    if (transfer->source_done && transfer->on_the_way == 0) {
        free(transfer->data);
        free(transfer->destinations);
        free(transfer);
    }
}

static void note(struct mesh *mesh, enum note_kind kind, const struct transfer *transfer, struct place to)
{
    const uint32_t bytes = transfer->rows * transfer->row_bytes;
    notes_add(mesh, (struct note){0, kind, transfer->owner->number, transfer->source.pe, to.pe, to.address, bytes,
                                  transfer->destination_flag, transfer->tag});
}

/* The copy of the data that goes to a place, with what a plan of faults makes of it. */
static void deliver(struct mesh *mesh, struct transfer *transfer, struct place place, bool harmed)
{
    const struct harm *harm = &transfer->harm;
    const uint64_t bits = 8 * (uint64_t)transfer->rows * transfer->row_bytes;
    const bool flips = harmed && harm->flips && bits > 0;
    const uint64_t bit = flips ? harm->bit % bits : 0;
    take_data(mesh, transfer);
    transfer->data[bit / 8] ^= flips ? (uint8_t)(1U << bit % 8) : 0U;
    note(mesh, flips ? NOTE_DAMAGED : NOTE_ARRIVED, transfer, place);
    put_data(mesh, transfer, place);
    trace_record(mesh, (struct trace_record){transfer->left_at, mesh->now, TRACE_TRANSFER, transfer->owner->number,
                                             transfer->source.pe, place.pe, transfer->rows * transfer->row_bytes, 0});
    transfer->data[bit / 8] ^= flips ? (uint8_t)(1U << bit % 8) : 0U;
    noc_count_flag(mesh, place.pe, transfer->destination_flag);
}

/* Whether the arrival comes once more. */
static bool comes_again(struct mesh *mesh, struct arrival *arrival, struct place place)
{
    const struct transfer *transfer = arrival->transfer;
    if (transfer->harm.again_after == 0 || arrival->again) {
        return false;
    }
    arrival->again = true;
    note(mesh, NOTE_AGAIN, transfer, place);
    events_post(mesh, mesh->now + transfer->harm.again_after, transfer->owner->number, on_arrival, arrival);
    return true;
}

static void on_arrival(struct mesh *mesh, void *subject)
{
    struct arrival *arrival = subject;
    struct transfer *transfer = arrival->transfer;
    const struct place place = transfer->destinations[arrival->destination];
    const bool harmed = transfer->harm.place == ANY_PE || transfer->harm.place == place.pe;
    if (harmed && transfer->harm.lost) {
        note(mesh, NOTE_LOST, transfer, place);
    } else {
        deliver(mesh, transfer, place, harmed);
    }
    if (harmed && comes_again(mesh, arrival, place)) {
        return;
    }
    transfer->on_the_way--;
    free(arrival);
    release(transfer);
}

static void on_source_done(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    take_data(mesh, transfer);
    transfer->source_done = true;
    dma_source_done(transfer);
    release(transfer);
}

static void arrive_at(struct mesh *mesh, struct transfer *transfer, uint32_t destination, uint64_t time)
{
    struct arrival *arrival = malloc(sizeof *arrival);
    *arrival = (struct arrival){transfer, destination, false};
    events_post(mesh, time, transfer->owner->number, on_arrival, arrival);
}

/* ---- the way ---- */

static void on_head(struct mesh *mesh, void *subject);

static struct head *new_head(struct transfer *transfer, uint32_t at, uint64_t pace)
{
    struct head *head = malloc(sizeof *head + transfer->destination_count * sizeof head->destinations[0]);
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

/* The head has come to a destination's router. */
static void reach(struct mesh *mesh, const struct head *head, uint32_t destination)
{
    struct transfer *transfer = head->transfer;
    const uint32_t place = transfer->destinations[destination].pe;
    uint64_t done = mesh->now + head->pace;
    if (is_dram(place)) {
        const uint64_t cycles = taken(mesh, transfer, mesh->figures.dram_bytes_per_cycle);
        const uint64_t from = grant_dram(mesh, place, cycles);
        done = from + (cycles > head->pace ? cycles : head->pace);
    } else {
        port_use(&mesh->pes[place], done - transfer->flits, transfer->flits);
    }
    if (head->at == router(mesh, transfer->source.pe)) { /* DRAM and the PE at its router: no link lies between */
        transfer->source_done_at = done > transfer->source_done_at ? done : transfer->source_done_at;
    }
    arrive_at(mesh, transfer, destination, done);
}

static void trace_link(struct mesh *mesh, const struct head *head, struct step step, const uint64_t *link, uint64_t from)
{
    const struct transfer *transfer = head->transfer;
    const uint32_t lane =
        step.leaves_chip ? (uint32_t)(link - mesh->noc->border_free) % mesh->figures.chip_links_per_border : 0;
    trace_record(mesh, (struct trace_record){from, *link, TRACE_LINK, head->at, step.next, lane,
                                             transfer->rows * transfer->row_bytes, 0});
}

/* The head goes on over one link, with the destinations that lie that way. Returns when it enters the link. */
static uint64_t cross(struct mesh *mesh, const struct head *head, struct step step, struct head *beyond)
{
    const struct figures *figures = &mesh->figures;
    const uint32_t width = step.leaves_chip ? figures->chip_link_bytes_per_cycle : figures->port_bytes_per_cycle;
    const uint64_t cycles = taken(mesh, head->transfer, width);
    uint64_t *link = link_of(mesh, head->at, step);
    const uint64_t from = grant(mesh, link, cycles);
    trace_link(mesh, head, step, link, from);
    beyond->pace = cycles > head->pace ? cycles : head->pace;
    struct transfer *transfer = head->transfer;
    if (head->at == router(mesh, transfer->source.pe)) {
        transfer->source_done_at = from + cycles > transfer->source_done_at ? from + cycles : transfer->source_done_at;
    }
    post_head(mesh, beyond, from + hop_cycles(mesh, step));
    return from;
}

static struct step step_to(const struct mesh *mesh, const struct head *head, uint32_t destination)
{
    return route_step(&mesh->figures, head->at, router(mesh, head->transfer->destinations[destination].pe));
}

/* Take from the head the destinations that lie in one direction, and send them there. */
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

/* Returns whether there were any. */
static bool reach_those_here(struct mesh *mesh, struct head *head)
{
    const uint32_t before = head->count;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < head->count; i++) {
        const uint32_t destination = head->destinations[i];
        if (router(mesh, head->transfer->destinations[destination].pe) == head->at) {
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
    if (!is_dram(transfer->source.pe) && from != NEVER) {
        port_use(&mesh->pes[transfer->source.pe], from, transfer->flits);
    }
}

static void on_head(struct mesh *mesh, void *subject)
{
    struct head *head = subject;
    struct transfer *transfer = head->transfer;
    const bool leaves_source = head->at == router(mesh, transfer->source.pe);
    uint64_t first = reach_those_here(mesh, head) ? mesh->now : NEVER;
    while (head->count > 0) {
        const uint64_t from = branch(mesh, head);
        first = from < first ? from : first;
    }
    if (leaves_source) {
        read_through_port(mesh, transfer, first);
        events_post(mesh, transfer->source_done_at, transfer->owner->number, on_source_done, transfer);
    }
    free(head);
}

/* A copy within one memory passes its port twice. */
static void copy_in_place(struct mesh *mesh, struct transfer *transfer, uint32_t destination)
{
    const uint32_t place = transfer->source.pe;
    uint64_t done = mesh->now + 2 * transfer->flits;
    if (is_dram(place)) {
        const uint64_t cycles = 2 * taken(mesh, transfer, mesh->figures.dram_bytes_per_cycle);
        done = grant_dram(mesh, place, cycles) + cycles;
    } else {
        port_use(&mesh->pes[place], mesh->now, 2 * transfer->flits);
    }
    transfer->source_done_at = done > transfer->source_done_at ? done : transfer->source_done_at;
    arrive_at(mesh, transfer, destination, done);
}

/* When the head leaves, and for how long that takes the source. */
static uint64_t leave_source(struct mesh *mesh, struct transfer *transfer, struct head *head)
{
    const uint32_t place = transfer->source.pe;
    if (head->count == 0 || !is_dram(place)) {
        return mesh->now;
    }
    const uint64_t cycles = taken(mesh, transfer, mesh->figures.dram_bytes_per_cycle);
    const uint64_t from = grant_dram(mesh, place, cycles);
    head->pace = cycles > head->pace ? cycles : head->pace;
    transfer->source_done_at = from + cycles > transfer->source_done_at ? from + cycles : transfer->source_done_at;
    return from;
}

static void depart(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    struct head *head = new_head(transfer, router(mesh, transfer->source.pe), transfer->flits);
    transfer->on_the_way = transfer->destination_count;
    transfer->source_done_at = mesh->now;
    transfer->left_at = mesh->now;
    for (uint32_t i = 0; i < transfer->destination_count; i++) {
        note(mesh, NOTE_SENT, transfer, transfer->destinations[i]);
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
    note(mesh, NOTE_LATE, transfer, transfer->destinations[0]);
    events_post(mesh, mesh->now + transfer->harm.late_by, transfer->owner->number, depart, transfer);
}
