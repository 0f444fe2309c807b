/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A network, usually in RTL, with the emulator's network beside. Both receive the same stores of registers. The RTL
 * moves the bytes; the emulator's network has the times. Each cycle of an SRAM port, each count of a flag, each error,
 * each end of a descriptor and each byte of a message must be the same; all else is a fault.
 *
 * The RTL's part of a cycle is the first event of the next cycle. The comparison of a cycle is the begin of the event
 * behind it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "network.h"
#include "network_device.h"

enum { ERRORS = 16 };

/* Of a PE: events of the RTL less events of the emulator's network, by event and number; cycles of the port. */
struct side {
    int32_t *events;
    uint64_t port_by_rtl, port_by_emulator;
    uint64_t woken; /* last cycle in which the emulator's network has set the event register */
    uint8_t *wrote; /* 1 for each byte of the SRAM written by the RTL, and not yet of a message that has arrived */
    uint32_t marked;
};

struct network_host {
    struct mesh *mesh;
    const struct network_model *model;
    void *state;
    struct network_place place;
    bool clocked; /* its event is posted */
    bool rests;   /* the RTL needs no further cycle */
    bool failed;  /* a DMA has ended in an error: parts of messages may have arrived */
    uint32_t kinds; /* of events of a PE */
    uint64_t open; /* events that only the RTL, or only the emulator's network, has shown */
    uint64_t begun; /* cycle since which the clock runs */
    struct side *sides;
};

static void on_cycle(struct mesh *mesh, void *subject);

/* ---- differences ---- */

/* Report a difference in the words of TELL(), at a PE with a core. */
static void differ(struct network_host *network, uint32_t number)
{
    struct mesh *mesh = network->mesh;
    struct pe *pe = &mesh->pes[mesh->pes[number].core != NULL ? number : mesh->root];
    mesh->fault_other = mesh->accelerator_count;
    mesh->fault_since = network->begun;
    pe_fault_at(pe, FAULT_DIFFERS, 0, pe->in_access ? pe->site : pe->pc);
}

#define TELL(network, pe, ...) \
    (snprintf((network)->mesh->fault_what, sizeof (network)->mesh->fault_what, __VA_ARGS__), differ(network, pe))

static const char *name_of(uint32_t kind, uint32_t flags)
{
    return kind < flags ? "flag" : kind < flags + ERRORS ? "error" : kind == flags + ERRORS ? "end of a descriptor" : "event";
}

static void compare_events(struct network_host *network)
{
    const struct mesh *mesh = network->mesh;
    const uint32_t flags = mesh->figures.flags;
    for (uint32_t pe = 0; pe < mesh->pe_count; pe++) {
        for (uint32_t kind = 0; kind < network->kinds && network->sides[pe].events != NULL; kind++) {
            const int32_t more = network->sides[pe].events[kind];
            if (more != 0) {
                TELL(network, pe, "in cycle %llu %s %u of PE %u shows in %s alone", (unsigned long long)mesh->now - 1,
                     name_of(kind, flags), kind < flags ? kind : kind < flags + ERRORS ? kind - flags : 0, pe,
                     more > 0 ? "the RTL" : "the model");
                return;
            }
        }
    }
}

/* Compare what adds up while the network works: cycles of the ports, and bytes beyond all messages. */
static void compare_totals(struct network_host *network)
{
    for (uint32_t pe = 0; pe < network->mesh->pe_count; pe++) {
        const struct side *side = &network->sides[pe];
        if (side->port_by_rtl != side->port_by_emulator) {
            TELL(network, pe, "the DMA of PE %u has taken the port for %llu cycles in RTL, for %llu in the model", pe,
                 (unsigned long long)side->port_by_rtl, (unsigned long long)side->port_by_emulator);
            return;
        }
        if (side->marked > 0 && !network->failed) {
            uint32_t at = 0;
            while (side->wrote[at] == 0) {
                at++;
            }
            TELL(network, pe, "the RTL has written address %#x of PE %u, and no message has", at, pe);
            return;
        }
    }
}

/* ---- the clock ---- */

static void ask(struct network_host *network, bool rests)
{
    struct mesh *mesh = network->mesh;
    network->rests = network->rests && rests;
    if (!network->clocked) {
        network->clocked = true;
        network->begun = mesh->now;
        events_post(mesh, mesh->now + 1, RANK_FIRST, on_cycle, network);
    }
}

static void end_cycle(struct network_host *network)
{
    struct mesh *mesh = network->mesh;
    network->clocked = false;
    if (network->open > 0) {
        compare_events(network);
        return;
    }
    if (network->rests) {
        compare_totals(network);
        return;
    }
    network->rests = !network->model->tick(network->state);
    network->clocked = true;
    events_post(mesh, mesh->now + 1, RANK_FIRST, on_cycle, network);
}

/* The board's time stands still in the cycles in which nothing happens but a comparison. */
static void on_cycle(struct mesh *mesh, void *subject)
{
    end_cycle(subject);
    mesh->now = mesh->faulted == NULL ? mesh->before : mesh->now;
}

/* ---- events of both ---- */

static uint32_t kind_of(const struct network_host *network, enum network_event event, uint32_t number)
{
    const uint32_t flags = network->mesh->figures.flags;
    switch (event) {
    case NETWORK_COUNTED:
        return number;
    case NETWORK_FAILED:
        return flags + number;
    case NETWORK_DONE:
        return flags + ERRORS;
    default:
        return flags + ERRORS + 1;
    }
}

static void change(struct network_host *network, uint32_t pe, enum network_event event, uint32_t number, int32_t by)
{
    struct side *side = &network->sides[pe];
    if (side->events == NULL) {
        side->events = needed(calloc(network->kinds, sizeof *side->events));
    }
    int32_t *more = &side->events[kind_of(network, event, number)];
    network->open -= *more != 0 ? 1 : 0;
    *more += by;
    network->open += *more != 0 ? 1 : 0;
    network->failed = network->failed || event == NETWORK_FAILED;
}

/* The emulator's network shows an event in the present cycle. */
void network_shows(struct mesh *mesh, uint32_t pe, enum network_event event, uint32_t number)
{
    struct network_host *network = mesh->network;
    if (network == NULL) {
        return;
    }
    struct side *side = &network->sides[pe];
    if (event == NETWORK_WOKEN && side->woken == mesh->now) {
        return; /* set twice in a cycle */
    }
    side->woken = event == NETWORK_WOKEN ? mesh->now : side->woken;
    change(network, pe, event, number, -1);
    ask(network, true);
}

void network_takes_port(const struct pe *pe, uint64_t cycles)
{
    struct network_host *network = pe->mesh->network;
    if (network != NULL) {
        network->sides[pe->number].port_by_emulator += cycles;
        ask(network, true);
    }
}

void network_write(const struct pe *pe, uint32_t offset, uint32_t value)
{
    const struct network_host *network = pe->mesh->network;
    if (network != NULL) {
        network->model->write(network->state, pe->number, offset, value);
    }
}

/* The core has read a register. A core under an IT instruction may read while events are due. */
void network_read(const struct pe *pe, uint32_t offset, uint32_t value)
{
    struct network_host *network = pe->mesh->network;
    if (network == NULL || events_first_time(pe->mesh) <= pe->mesh->now) {
        return;
    }
    const uint32_t by_rtl = network->model->read(network->state, pe->number, offset);
    if (by_rtl != value) {
        TELL(network, pe->number, "register %#x of the DMA reads as %#x in RTL, as %#x by the model", offset, by_rtl, value);
    }
}

/* Bytes of a message that has arrived: the RTL must have written them. While layers run alone, only the places of the
 * bytes are compared: the inputs of a layer are replaced while their message may still be read. */
void network_compare(struct mesh *mesh, uint32_t place, uint32_t address, const uint8_t *data, uint32_t bytes)
{
    struct network_host *network = mesh->network;
    uint64_t size;
    const uint8_t *memory = noc_memory(mesh, place, &size) + address;
    const bool dram = noc_is_dram(place);
    const uint8_t *wrote = dram ? NULL : network->sides[place].wrote;
    for (uint32_t i = 0; i < bytes; i++) {
        const bool written = dram || (wrote != NULL && wrote[address + i] != 0);
        if ((memory[i] != data[i] && mesh->alone_pes == 0) || !written) {
            TELL(network, noc_router(mesh, place), "address %#x of %s %u holds 0x%02x by the RTL%s, 0x%02x by the model",
                 address + i, dram ? "DRAM" : "PE", dram ? place - DRAM_OF_CHIP : place, memory[i],
                 written ? "" : ", which has not written", data[i]);
            return;
        }
    }
}

/* All bytes of a message have arrived at a PE. */
void network_landed(struct mesh *mesh, struct place to, const struct transfer *transfer)
{
    const bool marks = mesh->network != NULL && mesh->network->sides[to.pe].wrote != NULL;
    for (uint32_t row = 0; row < transfer->rows && marks; row++) {
        struct side *side = &mesh->network->sides[to.pe];
        uint8_t *wrote = side->wrote + to.address + (int64_t)row * transfer->destination_stride;
        for (uint32_t i = 0; i < transfer->row_bytes; i++) {
            side->marked -= wrote[i];
            wrote[i] = 0;
        }
    }
}

/* ---- services ---- */

static uint64_t now(const struct network_host *network)
{
    return network->mesh->now;
}

static void clock(struct network_host *network)
{
    ask(network, false);
}

static const uint8_t *memory(struct network_host *network, uint32_t place)
{
    uint64_t bytes;
    return noc_memory(network->mesh, place, &bytes);
}

static void mark(struct network_host *network, uint32_t pe, uint32_t address)
{
    struct side *side = &network->sides[pe];
    if (side->wrote == NULL) {
        side->wrote = needed(calloc(1, network->mesh->figures.sram_bytes));
    }
    side->marked += side->wrote[address] == 0 ? 1 : 0;
    side->wrote[address] = 1;
}

static void store(struct network_host *network, uint32_t place, uint32_t address, uint32_t strobe, const uint8_t *data)
{
    uint64_t bytes;
    uint8_t *to = noc_memory(network->mesh, place, &bytes);
    for (uint32_t i = 0; strobe >> i != 0; i++) {
        if ((strobe >> i & 1) != 0 && (uint64_t)address + i < bytes) {
            to[address + i] = data[i];
            if (!noc_is_dram(place)) {
                mark(network, place, address + i);
            }
        }
    }
}

static void took_port(struct network_host *network, uint32_t number)
{
    const struct mesh *mesh = network->mesh;
    network->sides[number].port_by_rtl++;
    if (port_used(&mesh->pes[number], mesh->now - 1, mesh->now) == 0) {
        TELL(network, number, "in cycle %llu the DMA of PE %u takes the port in the RTL alone",
             (unsigned long long)mesh->now - 1, number);
    }
}

static void happened(struct network_host *network, uint32_t pe, enum network_event event, uint32_t number)
{
    change(network, pe, event, number, 1);
}

static void failed(struct network_host *network, uint32_t pe, const char *where)
{
    TELL(network, pe, "the assertion at %s of PE %u does not hold", where, pe);
}

static const struct network_services services = {now, clock, memory, store, took_port, happened, failed};

/* Let `model` move the bytes of the network. Call before the board runs. */
const char *network_create(struct mesh *mesh, const struct network_model *model, const struct device_figure *figures,
                           uint32_t count)
{
    if (model->abi != NETWORK_ABI) {
        return "a model of the network was made for another version of network_device.h";
    }
    struct network_host *network = mesh->network = needed(calloc(1, sizeof *network));
    network->mesh = mesh;
    network->model = model;
    network->rests = true;
    network->kinds = mesh->figures.flags + ERRORS + 2;
    network->sides = needed(calloc(mesh->pe_count, sizeof *network->sides));
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        network->sides[i].woken = NEVER;
    }
    network->place = (struct network_place){network, &services, figures, count};
    network->state = model->start(&network->place);
    return NULL;
}

void network_end(struct mesh *mesh)
{
    struct network_host *network = mesh->network;
    for (uint32_t i = 0; network != NULL && i < mesh->pe_count; i++) {
        free(network->sides[i].events);
        free(network->sides[i].wrote);
    }
    if (network != NULL) {
        network->model->end(network->state);
        free(network->sides);
        free(network);
    }
    mesh->network = NULL;
}
