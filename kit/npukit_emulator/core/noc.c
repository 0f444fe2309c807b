/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The network-on-chip: state, dead parts, and routes between places. Hardware manual, section 4. */
#include "noc.h"

#include <stdlib.h>

#include "need.h"
#include "noc_state.h"
#include "route.h"

static uint32_t chips(const struct mesh *mesh)
{
    return mesh->figures.chip_columns * mesh->figures.chip_rows;
}

const char *noc_create(struct mesh *mesh)
{
    struct noc *noc = mesh->noc = needed(calloc(1, sizeof *noc));
    noc->link_free = needed(calloc((size_t)mesh->pe_count * DIRECTIONS, sizeof *noc->link_free));
    noc->border_free =
        needed(calloc((size_t)chips(mesh) * DIRECTIONS * mesh->figures.chip_links_per_border, sizeof(uint64_t)));
    noc->dram_free = needed(calloc(chips(mesh), sizeof *noc->dram_free));
    noc->dram = needed(calloc(chips(mesh), sizeof *noc->dram));
    noc->dead_link = needed(calloc((size_t)mesh->pe_count * DIRECTIONS, sizeof *noc->dead_link));
    noc->dead_pe = needed(calloc(mesh->pe_count, sizeof *noc->dead_pe));
    return noc->dead_pe != NULL ? NULL : "out of memory";
}

void noc_free(struct mesh *mesh)
{
    for (uint32_t chip = 0; chip < chips(mesh); chip++) {
        free(mesh->noc->dram[chip]);
    }
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
    if (!noc_is_dram(place)) {
        *bytes = mesh->figures.sram_bytes;
        return mesh->pes[place].sram;
    }
    uint8_t **dram = &mesh->noc->dram[place - DRAM_OF_CHIP];
    if (*dram == NULL) {
        *dram = needed(calloc(1, mesh->figures.dram_bytes)); /* the system allocates pages at first access */
    }
    *bytes = mesh->figures.dram_bytes;
    return *dram;
}

uint32_t noc_hop_cycles(const struct mesh *mesh, struct step step)
{
    return step.leaves_chip ? mesh->figures.chip_hop_cycles : mesh->figures.hop_cycles;
}

uint64_t noc_request_cycles(const struct mesh *mesh, uint32_t from, uint32_t place)
{
    uint64_t cycles = noc_is_dram(place) ? mesh->figures.dram_latency_cycles : 0;
    const uint32_t end = noc_router(mesh, place);
    for (uint32_t at = from; at != end;) {
        const struct step step = route_step(&mesh->figures, at, end);
        cycles += noc_hop_cycles(mesh, step);
        at = step.next;
    }
    return cycles;
}

void noc_count_flag(struct mesh *mesh, uint32_t pe, uint32_t flag, const struct transfer *transfer, bool arrived)
{
    if (noc_is_dram(pe) || flag >= mesh->figures.flags) {
        return;
    }
    mesh->pes[pe].flags[flag]++;
    races_counted(&mesh->pes[pe], flag, transfer, arrived);
    pe_set_event(&mesh->pes[pe]);
}
