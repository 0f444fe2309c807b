/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Links between chips: buffers at the border, and grants of the border's links. Hardware manual, section 4.6. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

static bool is_along_x(uint32_t port)
{
    return port == PORT_NORTH || port == PORT_SOUTH;
}

/* Routers along a border. A diagonal border has a single router, in the corner. */
static uint32_t routers_along(const struct figures *figures, uint32_t port)
{
    if (port == PORT_SOUTH_EAST || port == PORT_NORTH_WEST) {
        return 1;
    }
    return is_along_x(port) ? figures->columns : figures->rows;
}

/* The PE at a place along a chip's border. */
static uint32_t pe_along(const struct figures *figures, uint32_t chip, uint32_t port, uint32_t place)
{
    const uint32_t right = figures->columns - 1, bottom = figures->rows - 1;
    const uint32_t x = is_along_x(port) ? place : port == PORT_EAST || port == PORT_SOUTH_EAST ? right : 0;
    const uint32_t y = port == PORT_SOUTH || port == PORT_SOUTH_EAST ? bottom : is_along_x(port) || port == PORT_NORTH_WEST ? 0 : place;
    return (chip * figures->rows + y) * figures->columns + x;
}

static struct border *border_of(const struct mesh *mesh, uint32_t pe, uint32_t port)
{
    return &mesh->noc->borders[route_chip(&mesh->figures, pe) * PORTS + port];
}

struct buffer *border_buffer(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel)
{
    struct buffer **buffers = &mesh->noc->routers[pe].borders[port];
    if (*buffers == NULL) {
        *buffers = needed(calloc(mesh->noc->channels, sizeof **buffers));
        for (uint32_t i = 0; i < mesh->noc->channels; i++) {
            buffer_create(&(*buffers)[i], i % CLASSES == DATA ? mesh->figures.buffer_packets : 1);
        }
    }
    return &(*buffers)[channel];
}

/* Send the first packet of a channel over a link. */
static void cross(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel, uint32_t link)
{
    const struct figures *figures = &mesh->figures;
    struct border *border = border_of(mesh, pe, port);
    struct buffer *buffer = border_buffer(mesh, pe, port, channel);
    struct packet *packet = buffer->queue[0].packet;
    const uint64_t bytes = 100 * (uint64_t)packet->flits * figures->port_bytes_per_cycle;
    const uint64_t width = figures->chip_link_bytes_per_100_cycles, end = mesh->now + (bytes + width - 1) / width;
    const struct step step = route_neighbour(figures, pe, port);
    const uint64_t there = end + figures->chip_hop_cycles;
    border->free[link] = end;
    buffer_remove(buffer, end + 1);
    router_ask(mesh, pe, end + 1);
    border_ask(mesh, pe, port, end);
    trace_record(mesh, (struct trace_record){mesh->now, end, TRACE_LINK, pe, step.next, link, packet->bytes, 0});
    link_carry(mesh, step.next, route_opposite(port), channel, packet, there);
}

/* The channel of a router with a packet for the border, the highest class first. */
static bool find_channel(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t *found)
{
    const struct buffer *buffers = mesh->noc->routers[pe].borders[port];
    const uint32_t there = route_neighbour(&mesh->figures, pe, port).next;
    for (uint32_t class = CLASSES; class-- > 0 && buffers != NULL;) {
        for (uint32_t channel = class; channel < mesh->noc->channels; channel += CLASSES) {
            if (buffer_first(&buffers[channel], mesh->now) != NULL &&
                buffer_has_room(router_input(mesh, there, route_opposite(port), channel), mesh->now)) {
                *found = channel;
                return true;
            }
        }
    }
    return false;
}

static void grant_link(struct mesh *mesh, uint32_t chip, uint32_t port, uint32_t link)
{
    struct border *border = &mesh->noc->borders[chip * PORTS + port];
    const uint32_t count = routers_along(&mesh->figures, port);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t place = (border->last + 1 + i) % count, pe = pe_along(&mesh->figures, chip, port, place);
        uint32_t channel;
        if (find_channel(mesh, pe, port, &channel)) {
            border->last = place;
            cross(mesh, pe, port, channel, link);
            return;
        }
    }
}

static void on_grants(struct mesh *mesh, void *subject)
{
    struct border *border = subject;
    const uint32_t number = (uint32_t)(border - mesh->noc->borders);
    if (border->granted_at == mesh->now) {
        return; /* asked for twice */
    }
    border->granted_at = mesh->now;
    for (uint32_t link = 0; link < mesh->figures.chip_links_per_border; link++) {
        if (border->free[link] <= mesh->now) {
            grant_link(mesh, number / PORTS, number % PORTS, link);
        }
    }
}

void border_ask(struct mesh *mesh, uint32_t pe, uint32_t port, uint64_t cycle)
{
    struct border *border = border_of(mesh, pe, port);
    if (border->asked != cycle) {
        border->asked = cycle;
        events_post(mesh, cycle, RANK_OF_GRANTS + mesh->pe_count + route_chip(&mesh->figures, pe) * PORTS + port, on_grants, border);
    }
}

void border_put(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel, struct packet *packet, uint64_t from)
{
    buffer_add(border_buffer(mesh, pe, port, channel), packet, from);
    border_ask(mesh, pe, port, from);
}

void borders_create(struct mesh *mesh, uint32_t chips)
{
    const struct figures *figures = &mesh->figures;
    const uint32_t count = chips * PORTS;
    mesh->noc->borders = needed(calloc(count, sizeof *mesh->noc->borders));
    for (uint32_t i = 0; i < count; i++) {
        mesh->noc->borders[i] = (struct border){
            .free = needed(calloc(figures->chip_links_per_border, sizeof(uint64_t))),
            .last = routers_along(figures, i % PORTS) - 1,
            .asked = NEVER,
            .granted_at = NEVER,
        };
    }
}
