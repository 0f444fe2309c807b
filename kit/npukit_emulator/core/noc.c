/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The network-on-chip: state, dead parts, and routes between places. Hardware manual, section 4. */
#include "noc.h"

#include <stdlib.h>

#include "need.h"
#include "network.h"

static uint32_t chips(const struct mesh *mesh)
{
    return mesh->figures.chip_columns * mesh->figures.chip_rows;
}

const char *noc_create(struct mesh *mesh)
{
    struct noc *noc = mesh->noc = needed(calloc(1, sizeof *noc));
    noc->channels = mesh->figures.hexagonal_torus ? MOST_CHANNELS : CLASSES;
    noc->routers = needed(calloc(mesh->pe_count, sizeof *noc->routers));
    noc->ports = needed(calloc(mesh->pe_count, sizeof *noc->ports));
    noc->dead_link = needed(calloc((size_t)mesh->pe_count * PORTS, sizeof *noc->dead_link));
    noc->dead_pe = needed(calloc(mesh->pe_count, sizeof *noc->dead_pe));
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        noc->ports[i].served_last = true;
        noc->routers[i].asked = noc->routers[i].granted_at = NEVER;
        for (uint32_t port = 0; port < PORTS; port++) {
            noc->routers[i].last_granted[port] = PORTS - 1;
        }
    }
    borders_create(mesh, chips(mesh));
    drams_create(mesh, chips(mesh));
    return noc->dead_pe != NULL ? NULL : "out of memory";
}

void noc_free(struct mesh *mesh)
{
    drams_free(mesh, chips(mesh));
}

void noc_set_dead(struct mesh *mesh, uint32_t pe, uint32_t other)
{
    const struct step there = route_step(&mesh->figures, pe, other);
    const struct step back = route_step(&mesh->figures, other, pe);
    mesh->noc->dead_link[pe * PORTS + there.port] = true;
    mesh->noc->dead_link[other * PORTS + back.port] = true;
}

void noc_set_pe_dead(struct mesh *mesh, uint32_t pe)
{
    mesh->noc->dead_pe[pe] = true;
}

bool noc_is_dram(uint32_t place)
{
    return (place & DRAM_OF_CHIP) != 0;
}

bool noc_pe_exists(const struct mesh *mesh, uint32_t pe)
{
    if (noc_is_dram(pe)) {
        return pe - DRAM_OF_CHIP < chips(mesh) && mesh->figures.dram_bytes > 0;
    }
    return pe < mesh->pe_count && !mesh->noc->dead_pe[pe];
}

uint32_t noc_router(const struct mesh *mesh, uint32_t place)
{
    return noc_is_dram(place) ? (place - DRAM_OF_CHIP) * mesh->figures.columns * mesh->figures.rows : place;
}

bool noc_reaches(const struct mesh *mesh, uint32_t from, uint32_t to)
{
    uint32_t at = noc_router(mesh, from);
    const uint32_t end = noc_router(mesh, to);
    while (at != end) {
        const struct step step = route_step(&mesh->figures, at, end);
        if (mesh->noc->dead_link[at * PORTS + step.port]) {
            return false;
        }
        at = step.next;
    }
    return true;
}

uint8_t *noc_memory(struct mesh *mesh, uint32_t place, uint64_t *bytes)
{
    if (!noc_is_dram(place)) {
        *bytes = mesh->figures.sram_bytes;
        return mesh->pes[place].sram;
    }
    *bytes = mesh->figures.dram_bytes;
    return dram_bytes(mesh, place - DRAM_OF_CHIP);
}

void noc_count_flag(struct mesh *mesh, uint32_t pe, uint32_t flag, const struct transfer *transfer, bool arrived)
{
    if (noc_is_dram(pe) || flag >= mesh->figures.flags) {
        return;
    }
    mesh->pes[pe].flags[flag]++;
    network_shows(mesh, pe, NETWORK_COUNTED, flag);
    network_shows(mesh, pe, NETWORK_WOKEN, 0);
    races_counted(&mesh->pes[pe], flag, transfer, arrived);
    pe_set_event(&mesh->pes[pe]);
}
