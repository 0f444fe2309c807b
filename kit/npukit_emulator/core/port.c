/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The SRAM port of a PE: accelerators wait during DMA. */
#include "mesh.h"

/* The cycle at which the oldest running work began. Earlier use of the port does not matter any more. */
static uint64_t first_begin(const struct pe *pe)
{
    uint64_t begin = pe->mesh->now;
    for (uint32_t i = 0; i < DEVICES_PER_PE; i++) {
        const struct device_host *host = &pe->devices[i];
        begin = (host->pending || host->clocked) && host->since < begin ? host->since : begin;
    }
    return begin;
}

void port_forget(struct pe *pe)
{
    const uint64_t before = first_begin(pe);
    size_t kept = 0;
    for (size_t i = 0; i < pe->port_use_count; i++) {
        if (pe->port_uses[i].to >= before) { /* the cycle before is not over for clocked devices */
            pe->port_uses[kept++] = pe->port_uses[i];
        }
    }
    pe->port_use_count = kept;
}

void port_use(struct pe *pe, uint64_t from, uint64_t cycles)
{
    if (cycles == 0) {
        return;
    }
    if (pe->port_use_count == pe->port_use_room) {
        port_forget(pe);
    }
    network_takes_port(pe, cycles);
    pe->port_uses = grow(pe->port_uses, &pe->port_use_room, pe->port_use_count + 1, sizeof *pe->port_uses);
    pe->port_uses[pe->port_use_count++] = (struct port_use){from, from + cycles};
}

/* Cycles of DMA at the port in [from, to). */
uint64_t port_used(const struct pe *pe, uint64_t from, uint64_t to)
{
    uint64_t used = 0;
    for (size_t i = 0; i < pe->port_use_count; i++) {
        const uint64_t first = pe->port_uses[i].from > from ? pe->port_uses[i].from : from;
        const uint64_t last = pe->port_uses[i].to < to ? pe->port_uses[i].to : to;
        used += first < last ? last - first : 0;
    }
    return used;
}
