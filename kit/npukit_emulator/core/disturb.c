/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A random schedule from a seed: DMA and accelerators take longer, cores wake later and branch more slowly. The order
 * guaranteed by the hardware manual is kept, and results must be the same. */
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

/* Cycles of delay, of a random order of magnitude. Each PE has random numbers of its own: results do not depend on the
 * order in which PEs run. */
uint64_t disturb_delay(struct pe *pe)
{
    if (pe->chance == 0) {
        return 0;
    }
    const uint32_t bits = draw(pe) % (MOST_BITS + 1);
    return draw(pe) & ((1U << bits) - 1U);
}

/* First state of a PE's random numbers: never 0, distinct for the PEs of a seed. */
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
            draw(pe); /* similar states begin with similar numbers */
        }
        const bool slower = seed != 0 && i != mesh->root; /* the root PE has to keep up with the UART */
        pe->refill_cycles = pe->core_refill_cycles + (slower ? draw(pe) % MOST_REFILL : 0);
    }
}
