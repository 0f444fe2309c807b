/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The DMA at the device port of the SRAM: it fetches, sends or receives. Hardware manual, section 4.5. */
#include <stdlib.h>

#include "need.h"
#include "network.h"

enum { FETCH_CYCLES = 2 };

static struct dma_port *port_of(const struct mesh *mesh, const struct pe *pe)
{
    return &mesh->noc->ports[pe->number];
}

/* ---- fetch ---- */

void dma_port_fetch(struct mesh *mesh, struct pe *pe, uint64_t from)
{
    struct dma_port *port = port_of(mesh, pe);
    port->fetches = true;
    port->fetch_from = from;
    router_ask(mesh, pe->number, from);
}

void dma_port_drop(struct pe *pe)
{
    struct dma_port *port = port_of(pe->mesh, pe);
    port->fetches = port->sends = false;
    if (port->own.transfer != NULL) {
        noc_abandon(port->own.transfer);
        port->own.transfer = NULL;
    }
}

static uint32_t list_cycles(const struct cutter *cutter)
{
    const uint32_t entries = cutter->transfer->multicast ? cutter->count : 0;
    return (entries + ENTRIES_OF_A_FLIT - 1) / ENTRIES_OF_A_FLIT;
}

/* Read `cycles` of the descriptor and its list through the port. */
static void read_through_port(struct mesh *mesh, struct pe *pe, uint64_t cycles)
{
    struct dma_port *port = port_of(mesh, pe);
    port->until = mesh->now + cycles;
    port_use(pe, mesh->now + 1, cycles);
    router_ask(mesh, pe->number, port->until);
}

/* Send the next group of destinations, or report an error of theirs. */
static void begin_group(struct mesh *mesh, struct pe *pe, struct transfer *transfer, uint32_t first)
{
    struct dma_port *port = port_of(mesh, pe);
    cutter_begin(&port->own, transfer, first);
    const uint32_t list = list_cycles(&port->own);
    const uint32_t error = dma_check(transfer, first, port->own.count);
    port->own_from = mesh->now + mesh->figures.setup_cycles + list;
    read_through_port(mesh, pe, FETCH_CYCLES + list);
    if (error != 0) {
        port->own.transfer = NULL;
        dma_fail_at(pe, error, port->own_from);
        noc_abandon(transfer);
        return;
    }
    port->sends = true;
    port->asks = transfer->source.pe != pe->number;
    transfer->on_the_way += port->own.count;
    port->own_from += first == 0 && !port->asks ? noc_begin(mesh, transfer) : 0;
    router_ask(mesh, pe->number, port->own_from);
}

static void fetch(struct mesh *mesh, struct pe *pe)
{
    struct dma_port *port = port_of(mesh, pe);
    struct transfer *transfer = port->own.transfer;
    uint32_t error = 0;
    port->fetches = false;
    if (transfer != NULL) {
        begin_group(mesh, pe, transfer, port->own.first + port->own.count);
        return;
    }
    transfer = dma_fetch(pe, &error);
    if (transfer != NULL) {
        begin_group(mesh, pe, transfer, 0);
        return;
    }
    if (error != NOC_ERROR_PLACE) { /* else nothing was read */
        read_through_port(mesh, pe, FETCH_CYCLES);
    }
    dma_fail_at(pe, error, mesh->now + mesh->figures.setup_cycles);
}

/* ---- send ---- */

static void put(struct mesh *mesh, struct pe *pe, struct packet *packet)
{
    struct dma_port *port = port_of(mesh, pe);
    port->until = mesh->now + packet->flits - 1;
    port->send_from = mesh->now + packet->flits;
    port_use(pe, port->send_from - packet->data_flits, packet->data_flits);
    router_put(mesh, pe->number, PORT_PE, packet, mesh->now);
    router_ask(mesh, pe->number, port->until);
    router_ask(mesh, pe->number, port->send_from);
}

/* The last packet for a group of destinations has been sent. */
static void end_group(struct mesh *mesh, struct pe *pe)
{
    struct dma_port *port = port_of(mesh, pe);
    struct transfer *transfer = port->own.transfer;
    port->sends = false;
    if (port->own.first + port->own.count < transfer->destination_count) {
        dma_port_fetch(mesh, pe, port->send_from);
        return;
    }
    port->own.transfer = NULL;
    if (!port->asks) {
        noc_read_at(mesh, transfer, port->send_from);
    }
    if (!noc_is_dram(transfer->destinations[0].pe)) { /* else the acknowledgement ends it */
        noc_done_at(mesh, transfer, port->send_from);
    }
}

static void send_own(struct mesh *mesh, struct pe *pe)
{
    struct dma_port *port = port_of(mesh, pe);
    port->served_last = false;
    struct packet *packet = port->asks ? request_of(&port->own) : cutter_next(&port->own);
    const bool last = port->asks || packet->last;
    put(mesh, pe, packet);
    if (last) {
        end_group(mesh, pe);
    }
}

static void send_served(struct mesh *mesh, struct pe *pe)
{
    struct dma_port *port = port_of(mesh, pe);
    struct packet *packet = cutter_next(&port->served);
    port->served_last = true;
    port->serves = !packet->last;
    put(mesh, pe, packet);
    if (!port->serves) {
        noc_read_at(mesh, port->served.transfer, port->send_from);
    }
}

/* Send the next packet, of the own descriptor and of the served request in turns. */
static void send(struct mesh *mesh, struct pe *pe)
{
    const struct dma_port *port = port_of(mesh, pe);
    const uint64_t now = mesh->now;
    const bool own = port->sends && port->own_from <= now && router_takes(mesh, pe->number, PORT_PE, port->asks ? REQUEST : DATA);
    const bool served = port->serves && port->served_from <= now && router_takes(mesh, pe->number, PORT_PE, DATA);
    if (port->send_from > now || (!own && !served)) {
        return;
    }
    if (own && (!served || port->served_last)) {
        send_own(mesh, pe);
    } else {
        send_served(mesh, pe);
    }
}

void dma_port_grant(struct mesh *mesh, struct pe *pe)
{
    const struct dma_port *port = port_of(mesh, pe);
    if (port->until > mesh->now) {
        return;
    }
    if (port->fetches && port->fetch_from <= mesh->now) {
        fetch(mesh, pe);
    } else {
        send(mesh, pe);
    }
}

/* ---- receive ---- */

bool dma_port_receives(const struct mesh *mesh, const struct dma_port *port, enum packet_class class)
{
    switch (class) {
    case DATA:
        return port->until <= mesh->now;
    case REQUEST:
        return !port->serves && (port->send_from <= mesh->now || !port->served_last);
    default:
        return true;
    }
}

static void serve(struct mesh *mesh, struct pe *pe, const struct packet *packet)
{
    struct dma_port *port = port_of(mesh, pe);
    port->serves = true;
    port->served_from = mesh->now + packet->flits + 1;
    cutter_begin(&port->served, packet->transfer, packet->group);
    port->served_from += packet->group == 0 ? noc_begin(mesh, packet->transfer) : 0;
    router_ask(mesh, pe->number, port->served_from);
}

void dma_port_receive(struct mesh *mesh, struct pe *pe, struct packet *packet)
{
    struct dma_port *port = port_of(mesh, pe);
    switch (packet->class) {
    case DATA:
        port->until = mesh->now + packet->flits;
        port_use(pe, port->until + 1 - packet->data_flits, packet->data_flits);
        router_ask(mesh, pe->number, port->until);
        noc_end_packet(mesh, pe->number, packet, PORT_PE, port->until + 1);
        break;
    case REQUEST:
        serve(mesh, pe, packet);
        break;
    default:
        noc_done_at(mesh, packet->transfer, mesh->now + 2);
    }
    free(packet);
}
