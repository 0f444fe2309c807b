/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A schedule by a seed: DMA starts and accelerators that take longer, cores that wake later and branch slower. The
 * hardware manual's order of things is kept, so what comes out must be the same. */
#include "api.h"
#include "mesh.h"

enum { MOST_BITS = 12, MOST_REFILL = 16 };

static uint32_t draw(struct pe *pe)
{
    pe->chance ^= pe->chance << 13;
    pe->chance ^= pe->chance >> 17;
    pe->chance ^= pe->chance << 5;
    return pe->chance;
}

/* Cycles of delay, of any order of magnitude. A PE draws from numbers of its own, so that it does not matter which PE
 * runs first. */
uint64_t disturb_delay(struct pe *pe)
{
    if (pe->chance == 0) {
        return 0;
    }
    const uint32_t bits = draw(pe) % (MOST_BITS + 1);
    return draw(pe) & ((1U << bits) - 1U);
}

/* Distinct and never 0 for the PEs of a seed. */
static uint32_t beginning(uint32_t seed, uint32_t pe)
{
    const uint32_t mixed = (seed * 0x9E3779B9U) ^ ((pe + 1) * 0x85EBCA6BU);
    return mixed != 0 ? mixed : 1;
}

void mesh_disturb(struct mesh *mesh, uint32_t seed)
{
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        struct pe *pe = &mesh->pes[i];
        pe->chance = seed != 0 ? beginning(seed, i) : 0;
        for (uint32_t skipped = 0; skipped < 8 && seed != 0; skipped++) {
            draw(pe); /* numbers of like beginnings are alike at first */
        }
        const bool slower = seed != 0 && i != mesh->root; /* the root PE has to keep up with the UART */
        pe->refill_cycles = pe->core_refill_cycles + (slower ? draw(pe) % MOST_REFILL : 0);
    }
}
