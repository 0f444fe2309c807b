/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Routes through the mesh: first along x, then along y, over the whole board. On a hexagonal torus of chips: from chip to
 * chip first along the diagonals, the shortest way around, and then within the chip. */
#ifndef ROUTE_H
#define ROUTE_H

#include "mesh.h"

/* Inputs and outputs of a router, in the order of grants. The last two lie only between chips. */
enum port { PORT_PE, PORT_NORTH, PORT_EAST, PORT_SOUTH, PORT_WEST, PORT_DRAM, PORT_SOUTH_EAST, PORT_NORTH_WEST, PORTS };

/* Parts of a way on a torus: even numbers, plus 1 once the part has gone around. A grid has the first alone. */
enum { PART_DIAGONAL = 0, PART_X = 2, PART_Y = 4, PART_CHIP = 6, PARTS };

/* A step of a packet. */
struct step {
    uint32_t next;
    uint32_t port;
    bool leaves_chip;
    bool goes_around; /* to the first chip of a row or column behind the last, or back */
    uint32_t part;
};

uint32_t route_chip(const struct figures *figures, uint32_t pe);

/* The step from a PE towards another PE. */
struct step route_step(const struct figures *figures, uint32_t from, uint32_t to);

/* The step over a link of a router. */
struct step route_neighbour(const struct figures *figures, uint32_t from, uint32_t port);
uint32_t route_opposite(uint32_t port);

#endif
