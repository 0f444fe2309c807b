/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Routes through the mesh: first along x, then along y, between chips and then within a chip. On a hexagonal torus of
 * chips: first along the diagonals, the shortest way around. */
#ifndef ROUTE_H
#define ROUTE_H

#include "mesh.h"

enum direction { EAST, WEST, SOUTH, NORTH, SOUTH_EAST, NORTH_WEST, DIRECTIONS }; /* the last two only between chips */

/* One step of a packet. */
struct step {
    uint32_t next;
    uint32_t direction;
    bool leaves_chip;
};

uint32_t route_chip(const struct figures *figures, uint32_t pe);

/* The step from a PE towards another PE. */
struct step route_step(const struct figures *figures, uint32_t from, uint32_t to);

#endif
