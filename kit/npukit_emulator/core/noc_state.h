/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Internals of the network-on-chip: noc.c, noc_packets.c and noc_data.c. */
#ifndef NOC_STATE_H
#define NOC_STATE_H

#include "noc.h"
#include "route.h"

struct noc {
    uint64_t *link_free;   /* [PE][direction] */
    uint64_t *border_free; /* [chip][direction][link] */
    uint64_t *dram_free;   /* [chip] */
    uint8_t **dram;        /* [chip], allocated at first use */
    bool *dead_link;       /* [PE][direction] */
    bool *dead_pe;
};

bool noc_is_dram(uint32_t place);

/* The PE at whose router a place is. */
uint32_t noc_router(const struct mesh *mesh, uint32_t place);
uint32_t noc_hop_cycles(const struct mesh *mesh, struct step step);

/* Post the arrival of a destination's last byte, or the end of reading the source, at a cycle. */
void noc_arrive_at(struct mesh *mesh, struct transfer *transfer, uint32_t destination, uint64_t time);
void noc_source_done_at(struct mesh *mesh, struct transfer *transfer, uint64_t time);
void noc_note(struct mesh *mesh, enum note_kind kind, const struct transfer *transfer, struct place to);

#endif
