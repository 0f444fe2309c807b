/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Routers: inputs choose a class of packets, outputs grant an input. Hardware manual, section 4.4. */
#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "network.h"

enum { INNER = 1 << PORT_PE | 1 << PORT_DRAM };

/* An input's packet of a cycle, and the outputs open to it. */
struct choice {
    struct packet *packet;
    uint32_t channel;
    uint32_t outputs; /* a bit for each */
    uint32_t granted;
    struct step steps[PORTS];
};

static struct router *router_of(const struct mesh *mesh, uint32_t pe)
{
    return &mesh->noc->routers[pe];
}

/* ---- buffers of the inputs ---- */

static uint32_t room_of(const struct mesh *mesh, uint32_t channel, bool border)
{
    const struct figures *figures = &mesh->figures;
    return channel % CLASSES != DATA ? 1 : border ? figures->border_packets : figures->buffer_packets;
}

static bool comes_from_border(const struct mesh *mesh, uint32_t pe, uint32_t port)
{
    return (INNER >> port & 1) == 0 && route_neighbour(&mesh->figures, pe, port).leaves_chip;
}

struct buffer *router_input(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel)
{
    struct router *router = router_of(mesh, pe);
    if (router->inputs[port] == NULL) {
        router->inputs[port] = needed(calloc(mesh->noc->channels, sizeof(struct buffer)));
        const bool border = comes_from_border(mesh, pe, port);
        for (uint32_t i = 0; i < mesh->noc->channels; i++) {
            buffer_create(&router->inputs[port][i], room_of(mesh, i, border));
        }
    }
    return &router->inputs[port][channel];
}

bool router_takes(struct mesh *mesh, uint32_t pe, uint32_t port, enum packet_class class)
{
    return buffer_has_room(router_input(mesh, pe, port, class), mesh->now);
}

void router_put(struct mesh *mesh, uint32_t pe, uint32_t port, struct packet *packet, uint64_t since)
{
    const uint64_t from = since + INNER_HOP_CYCLES + packet->list_flits;
    if (port == PORT_DRAM) {
        link_carry(mesh, pe, port, packet->class, packet, from);
        return;
    }
    buffer_add(router_input(mesh, pe, port, packet->class), packet, from);
    router_ask(mesh, pe, from);
}

/* ---- routes ---- */

static uint32_t channel_of(const struct packet *packet, struct step step)
{
    return step.part * CLASSES + packet->class;
}

static struct step step_of(const struct mesh *mesh, uint32_t pe, const struct packet *packet, uint32_t destination)
{
    const uint32_t place = packet_place(packet, destination);
    const uint32_t end = packet->astray ? packet->found_at : noc_router(mesh, place);
    if (end == pe) {
        return (struct step){.next = pe, .port = !packet->astray && noc_is_dram(place) ? PORT_DRAM : PORT_PE};
    }
    struct step step = route_step(&mesh->figures, pe, end);
    const bool around = packet->around && packet->part / 2 == step.part / 2;
    step.part += around ? 1 : 0;
    return step;
}

/* ---- conditions of a grant ---- */

static bool has_room(struct mesh *mesh, uint32_t pe, const struct packet *packet, struct step step)
{
    const uint32_t channel = channel_of(packet, step);
    switch (step.port) {
    case PORT_PE:
        return dma_port_receives(mesh, &mesh->noc->ports[pe], packet->class);
    case PORT_DRAM:
        return buffer_has_room(&mesh->noc->drams[route_chip(&mesh->figures, pe)].channels[packet->class], mesh->now);
    default:
        return buffer_has_room(step.leaves_chip ? border_buffer(mesh, pe, step.port, channel)
                                                : router_input(mesh, step.next, route_opposite(step.port), channel),
                               mesh->now);
    }
}

static void find_outputs(struct mesh *mesh, uint32_t pe, struct choice *choice)
{
    const struct router *router = router_of(mesh, pe);
    for (uint32_t i = 0; i < choice->packet->count; i++) {
        const struct step step = step_of(mesh, pe, choice->packet, i);
        const uint32_t bit = 1U << step.port;
        if ((choice->outputs & bit) == 0 && router->output_free[step.port] <= mesh->now &&
            has_room(mesh, pe, choice->packet, step)) {
            choice->outputs |= bit;
            choice->steps[step.port] = step;
        }
    }
}

/* Choose the highest class with a packet for an open output. */
static void choose(struct mesh *mesh, uint32_t pe, uint32_t input, struct choice *choice)
{
    struct router *router = router_of(mesh, pe);
    const struct buffer *buffers = router->inputs[input];
    choice->packet = NULL;
    choice->outputs = choice->granted = 0;
    if (buffers == NULL || router->input_free[input] > mesh->now) {
        return;
    }
    for (uint32_t class = CLASSES; class-- > 0 && choice->outputs == 0;) {
        for (uint32_t channel = class; channel < mesh->noc->channels && choice->outputs == 0; channel += CLASSES) {
            choice->packet = buffer_first(&buffers[channel], mesh->now);
            choice->channel = channel;
            if (choice->packet != NULL) {
                find_outputs(mesh, pe, choice);
            }
        }
    }
}

/* ---- grants ---- */

/* The part of a packet for an output. */
static struct packet *branch(struct mesh *mesh, uint32_t pe, struct packet *packet, struct step step)
{
    const uint32_t channel = channel_of(packet, step);
    struct packet *part = needed(malloc(sizeof *part + packet->count * sizeof part->destinations[0]));
    uint32_t kept = 0;
    *part = *packet;
    part->count = 0;
    part->part = step.part;
    part->around = step.part % 2 == 1 || step.goes_around;
    for (uint32_t i = 0; i < packet->count; i++) {
        const struct step each = step_of(mesh, pe, packet, i);
        if (each.port == step.port && channel_of(packet, each) == channel) {
            part->destinations[part->count++] = packet->destinations[i];
        } else {
            packet->destinations[kept++] = packet->destinations[i];
        }
    }
    packet->count = kept;
    return part;
}

static void trace_link(struct mesh *mesh, uint32_t pe, const struct packet *packet, struct step step)
{
    trace_record(mesh, (struct trace_record){mesh->now, mesh->now + packet->flits, TRACE_LINK, pe, step.next, 0,
                                             packet->bytes, 0});
}

static void send(struct mesh *mesh, uint32_t pe, struct packet *packet, struct step step)
{
    const uint32_t channel = channel_of(packet, step), opposite = route_opposite(step.port);
    const uint64_t there = mesh->now + mesh->figures.hop_cycles + packet->list_flits;
    switch (step.port) {
    case PORT_PE:
        dma_port_receive(mesh, &mesh->pes[pe], packet);
        return;
    case PORT_DRAM:
        buffer_add(&mesh->noc->drams[route_chip(&mesh->figures, pe)].channels[packet->class], packet,
                   mesh->now + packet->flits + 1);
        router_ask(mesh, pe, mesh->now + packet->flits + 1);
        return;
    default:
        if (step.leaves_chip) {
            border_put(mesh, pe, step.port, channel, packet, mesh->now + packet->flits + 1);
            return;
        }
        trace_link(mesh, pe, packet, step);
        link_carry(mesh, step.next, opposite, channel, packet, there);
    }
}

void router_ask_before(struct mesh *mesh, uint32_t pe, uint32_t input, uint64_t cycle)
{
    if ((INNER >> input & 1) != 0) {
        router_ask(mesh, pe, cycle);
        return;
    }
    const struct step back = route_neighbour(&mesh->figures, pe, input);
    if (back.leaves_chip) {
        border_ask(mesh, back.next, route_opposite(input), cycle);
    } else {
        router_ask(mesh, back.next, cycle);
    }
}

/* Free the place of a packet after its last output, for the sender before this router. */
static void free_place(struct mesh *mesh, uint32_t pe, uint32_t input, uint32_t channel, uint32_t flits)
{
    struct router *router = router_of(mesh, pe);
    const bool inner = (INNER >> input & 1) != 0, border = comes_from_border(mesh, pe, input);
    const uint64_t hop = inner ? INNER_HOP_CYCLES : mesh->figures.hop_cycles;
    const uint64_t later = border ? mesh->figures.chip_hop_cycles : hop - 1, from = mesh->now + flits + later;
    buffer_remove(&router->inputs[input][channel], from);
    router_ask_before(mesh, pe, input, from);
}

static void leave(struct mesh *mesh, uint32_t pe, uint32_t input, struct choice *choice)
{
    struct router *router = router_of(mesh, pe);
    struct packet *packet = choice->packet;
    const uint32_t flits = packet->flits;
    for (uint32_t output = 0; output < PORTS; output++) {
        if ((choice->granted >> output & 1) != 0) {
            router->output_free[output] = mesh->now + flits;
            send(mesh, pe, branch(mesh, pe, packet, choice->steps[output]), choice->steps[output]);
        }
    }
    router->input_free[input] = mesh->now + flits;
    if (packet->count == 0) {
        free_place(mesh, pe, input, choice->channel, flits);
        free(packet);
    }
    router_ask(mesh, pe, mesh->now + flits);
}

static void grant(struct mesh *mesh, uint32_t pe)
{
    struct router *router = router_of(mesh, pe);
    struct choice choices[PORTS];
    for (uint32_t input = 0; input < PORTS; input++) {
        choose(mesh, pe, input, &choices[input]);
    }
    for (uint32_t output = 0; output < PORTS; output++) {
        for (uint32_t i = 0; i < PORTS; i++) {
            const uint32_t input = (router->last_granted[output] + 1 + i) % PORTS;
            if ((choices[input].outputs >> output & 1) != 0) {
                choices[input].granted |= 1U << output;
                router->last_granted[output] = input;
                break;
            }
        }
    }
    for (uint32_t input = 0; input < PORTS; input++) {
        if (choices[input].granted != 0) {
            leave(mesh, pe, input, &choices[input]);
        } else if (choices[input].outputs != 0) { /* may choose another class in the next cycle */
            router_ask(mesh, pe, mesh->now + 1);
        }
    }
}

static void on_grants(struct mesh *mesh, void *subject)
{
    struct router *router = subject;
    const uint32_t pe = (uint32_t)(router - mesh->noc->routers);
    if (router->granted_at == mesh->now) {
        return; /* asked for twice */
    }
    router->granted_at = mesh->now;
    grant(mesh, pe);
    dma_port_grant(mesh, &mesh->pes[pe]);
    if (pe == noc_router(mesh, DRAM_OF_CHIP + route_chip(&mesh->figures, pe))) {
        dram_grant(mesh, route_chip(&mesh->figures, pe));
    }
}

void router_ask(struct mesh *mesh, uint32_t pe, uint64_t cycle)
{
    struct router *router = router_of(mesh, pe);
    if (router->asked != cycle) {
        router->asked = cycle;
        events_post(mesh, cycle, RANK_OF_GRANTS + pe, on_grants, router);
    }
}
