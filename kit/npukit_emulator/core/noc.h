/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Interface between dma.c, which reads descriptors, and noc.c, which moves the data. */
#ifndef NOC_H
#define NOC_H

#include "mesh.h"

#define DRAM_OF_CHIP 0x80000000U
enum { NOC_ERROR_PLACE = 2, NOC_ERROR_CRC = 7, NOC_ERROR_NUMBER = 8 }; /* in the DMA's ERROR register */

#define THIS_CHIP 0x40000000U /* in a descriptor: the number is relative to the PE's own chip */

/* A source or destination of data: a PE, or a chip's DRAM (DRAM_OF_CHIP + chip). */
struct place {
    uint32_t pe;
    uint32_t address;
};

/* Planned faults of a packet, at a single destination or at all (ANY_PE). */
struct harm {
    uint32_t place;
    bool lost, flips;
    uint64_t hop; /* links before the struck link; NEVER: the last link is struck */
    uint64_t part; /* number of the struck packet; NEVER: the last packet is struck */
    uint64_t late_by;     /* cycles; 0: on time */
    uint64_t again_after; /* cycles until a second arrival; 0: none */
    uint64_t bit;
};

/* A descriptor under way. */
struct transfer {
    struct pe *owner;
    uint32_t row_bytes, rows;
    int32_t source_stride, destination_stride;
    uint32_t source_flag, destination_flag;
    struct place source;
    struct place *destinations;
    uint32_t destination_count;
    bool multicast;

    uint64_t asked_at, left_at;
    uint32_t reign; /* of the DMA at the fetch: dma.c */
    uint32_t tag;
    struct harm harm;

    struct view view; /* the core's view at the doorbell: races.h */
    uint32_t descriptor, deed, landing;

    uint8_t *data; /* bytes read from the source */
    uint32_t on_the_way; /* destinations to be reached */
    bool done; /* the descriptor */
};

const char *noc_create(struct mesh *mesh);
void noc_free(struct mesh *mesh);
void noc_set_dead(struct mesh *mesh, uint32_t pe, uint32_t other);
void noc_set_pe_dead(struct mesh *mesh, uint32_t pe);
bool noc_pe_exists(const struct mesh *mesh, uint32_t pe);
bool noc_reaches(const struct mesh *mesh, uint32_t from, uint32_t to);

/* The memory of a place. `bytes`: its size. */
uint8_t *noc_memory(struct mesh *mesh, uint32_t place, uint64_t *bytes);

/* Fetch a descriptor through the port of a PE, from a cycle on, and send its message. Calls dma_fetch(), dma_check() and,
 * when the source may be overwritten, dma_done(). */
void dma_port_fetch(struct mesh *mesh, struct pe *pe, uint64_t from);

/* Fetch and send nothing more of the PE's own chains. A granted packet is sent to its end. */
void dma_port_drop(struct pe *pe);

/* Read the due descriptor. NULL: an error of the descriptor or its list. */
struct transfer *dma_fetch(struct pe *pe, uint32_t *error);

/* Check some of a message's destinations, with the first ones the source too. Returns an error or 0. */
uint32_t dma_check(const struct transfer *transfer, uint32_t first, uint32_t count);
void dma_fail_at(struct pe *pe, uint32_t error, uint64_t time);
void dma_done(struct transfer *transfer);

/* An error of the network at a PE's router. */
void dma_report(struct pe *pe, uint32_t error);

/* network_beside.c: bytes of a message that has arrived; the end of their comparison at a PE. */
void network_compare(struct mesh *mesh, uint32_t place, uint32_t address, const uint8_t *data, uint32_t bytes);
void network_landed(struct mesh *mesh, struct place to, const struct transfer *transfer);

/* Increment a flag: a message has `arrived`, or has left its source. */
void noc_count_flag(struct mesh *mesh, uint32_t pe, uint32_t flag, const struct transfer *transfer, bool arrived);

#endif
