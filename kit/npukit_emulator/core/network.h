/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Internals of the network-on-chip: packets, the buffers between its parts, routers, the DMA's port, chip links and DRAM.
 * Hardware manual, sections 4.3 to 4.8.
 *
 * A grant changes the network from the next cycle on. All grants of a cycle are therefore made by an event for each
 * router, behind the other events of the cycle, in any order of the routers. */
#ifndef NETWORK_H
#define NETWORK_H

#include "noc.h"
#include "route.h"

enum packet_class { DATA, REQUEST, ACKNOWLEDGEMENT, CLASSES };

enum { MOST_CHANNELS = CLASSES * PARTS, ENTRIES_OF_A_FLIT = 4, MOST_DESTINATIONS = 60 };

/* Cycles from a grant to the next possible grant of the packet, between the router and its own PE or DRAM. */
enum { INNER_HOP_CYCLES = 2 };

/* Rank of a router's grants among the events of a cycle: behind all others. */
#define RANK_OF_GRANTS 0x80000000U

/* A packet, for some of the message's destinations. */
struct packet {
    struct transfer *transfer;
    enum packet_class class;
    uint32_t flits, data_flits, bytes;
    uint32_t list_flits; /* for routers: a request has its way in the header */
    uint32_t group; /* of a request: the first destination */
    uint32_t row, rows; /* of the message */
    uint32_t offset, row_bytes; /* the part of each row */
    bool last, wants_acknowledgement;
    uint32_t links; /* behind it: into routers, and the DRAM's */
    uint32_t number; /* of the message's packets, from 0 */
    bool damaged; /* on a link into a router */
    bool astray;  /* wrong header or list: leaves the network at the router of PE `found_at` */
    uint32_t found_at;
    bool around; /* on a torus: has gone around since the part of its way began */
    uint32_t part; /* of its way */
    uint32_t count;
    uint32_t destinations[]; /* indices into the transfer's; unused by other classes than DATA */
};

/* Packets of a channel at the end of a link, the oldest first. The place of a packet after it has left is free from a
 * cycle on. */
struct queued {
    struct packet *packet;
    uint64_t from; /* first cycle in which the packet may be granted */
};

struct buffer {
    uint32_t room, count;
    struct queued *queue;
    uint64_t *free_from; /* each place; NEVER: taken */
};

void buffer_create(struct buffer *buffer, uint32_t room);
bool buffer_has_room(const struct buffer *buffer, uint64_t cycle);
void buffer_add(struct buffer *buffer, struct packet *packet, uint64_t from);
/* Take a place for no packet until a cycle. */
void buffer_skip(struct buffer *buffer, uint64_t free_from);

struct packet *buffer_first(const struct buffer *buffer, uint64_t cycle); /* NULL: none may be granted */

/* Remove the first packet. Its place is free from a cycle on. */
void buffer_remove(struct buffer *buffer, uint64_t free_from);

/* The packets of a message for some of its destinations, in order. */
struct cutter {
    struct transfer *transfer;
    uint32_t first, count; /* destinations */
    uint32_t row, offset, packets;
    bool ended;
};

void cutter_begin(struct cutter *cutter, struct transfer *transfer, uint32_t first);
struct packet *cutter_next(struct cutter *cutter);
uint32_t cutter_flits(const struct cutter *cutter); /* of the next packet */
struct packet *packet_of(struct transfer *transfer, enum packet_class class, uint32_t flits);
struct packet *request_of(const struct cutter *cutter);

/* The PE or DRAM to which a packet goes. `destination`: place in the packet's list. */
uint32_t packet_place(const struct packet *packet, uint32_t destination);

/* The DMA of a PE at the SRAM's port. */
struct dma_port {
    uint64_t until; /* last cycle of the port for the last grant */
    bool fetches;
    uint64_t fetch_from;
    struct cutter own, served;
    bool sends, serves, asks; /* asks: a request of its own, not data */
    uint64_t own_from, served_from, send_from;
    bool served_last;
};

void dma_port_grant(struct mesh *mesh, struct pe *pe);
bool dma_port_receives(const struct mesh *mesh, const struct dma_port *port, enum packet_class class);
void dma_port_receive(struct mesh *mesh, struct pe *pe, struct packet *packet);

/* The end of a link. */
struct receiver {
    bool closed; /* throws data away after an error */
    bool misses; /* a packet was lost on the way to it */
    bool told;   /* the error shows */
};

/* A router. Inputs and borders are allocated at first use: a buffer for each channel. */
struct router {
    struct buffer *inputs[PORTS], *borders[PORTS];
    uint64_t input_free[PORTS], output_free[PORTS];
    uint32_t last_granted[PORTS];
    struct receiver at_input[PORTS], at_output[PORTS];
    uint64_t asked, granted_at; /* cycles */
};

/* A DRAM's controller. */
struct dram {
    uint8_t *bytes; /* allocated at first use */
    struct buffer channels[MOST_CHANNELS];
    uint64_t free, link_free, refresh_at, known; /* cycles; known: the served request */
    uint64_t *bank_row, *bank_free; /* NEVER: closed */
    struct cutter served;
    bool serves, read_last;
};

void dram_grant(struct mesh *mesh, uint32_t chip);
uint8_t *dram_bytes(struct mesh *mesh, uint32_t chip);
void drams_create(struct mesh *mesh, uint32_t chips);
void drams_free(struct mesh *mesh, uint32_t chips);

/* The links of a border in a direction. */
struct border {
    uint64_t *free; /* each link */
    uint32_t last; /* place of the last granted router along the border */
    uint64_t asked, granted_at;
};

struct noc {
    uint32_t channels;
    struct router *routers; /* each PE */
    struct dma_port *ports;
    struct border *borders; /* [chip][port] */
    struct dram *drams;
    bool *dead_link; /* [PE][port] */
    bool *dead_pe;
};

/* Ask for a router's grants in a cycle. */
void router_ask(struct mesh *mesh, uint32_t pe, uint64_t cycle);
/* Ask for the grants of the sender before an input. */
void router_ask_before(struct mesh *mesh, uint32_t pe, uint32_t input, uint64_t cycle);
struct buffer *router_input(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel);

/* Put a packet of the PE or DRAM at the router into its input's buffer, with the header in cycle `since`. */
void router_put(struct mesh *mesh, uint32_t pe, uint32_t port, struct packet *packet, uint64_t since);
bool router_takes(struct mesh *mesh, uint32_t pe, uint32_t port, enum packet_class class);

/* links.c: a packet on a link into a router, where it may be granted from a cycle on. */
void link_carry(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel, struct packet *packet, uint64_t from);

/* Find the struck packet of a message and the struck link of its way. */
void link_plan(const struct mesh *mesh, struct transfer *transfer);

/* Whether the planned faults of a message strike this packet. */
bool link_strikes(const struct packet *packet);

/* The border behind a router's output: its buffer, and a packet put there. */
struct buffer *border_buffer(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel);
void border_put(struct mesh *mesh, uint32_t pe, uint32_t port, uint32_t channel, struct packet *packet, uint64_t from);
void borders_create(struct mesh *mesh, uint32_t chips);
void border_ask(struct mesh *mesh, uint32_t pe, uint32_t port, uint64_t cycle);

bool noc_is_dram(uint32_t place);

/* The PE at whose router a place is. */
uint32_t noc_router(const struct mesh *mesh, uint32_t place);

/* A message's first packet is on the point of leaving. Returns the cycles by which a planned fault delays it. */
uint64_t noc_begin(struct mesh *mesh, struct transfer *transfer);

/* Post the end of reading the source, or of the descriptor, at a cycle. */
void noc_read_at(struct mesh *mesh, struct transfer *transfer, uint64_t time);
void noc_done_at(struct mesh *mesh, struct transfer *transfer, uint64_t time);

/* End a message of which no further packet leaves. */
void noc_abandon(struct transfer *transfer);

/* A packet ends at an output of a PE's router in a cycle, with planned faults. Returns whether all is well. */
bool noc_end_packet(struct mesh *mesh, uint32_t pe, struct packet *packet, uint32_t output, uint64_t time);

/* A packet of data does not arrive. By the cycle its message has been read. */
void noc_lose(struct mesh *mesh, struct packet *packet, uint64_t time);
void noc_note(struct mesh *mesh, enum note_kind kind, const struct transfer *transfer, struct place to);

#endif
