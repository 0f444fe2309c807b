/* SPDX-License-Identifier: GPL-2.0-only */
#include "route.h"

struct position {
    uint32_t chip_x, chip_y, x, y;
};

uint32_t route_chip(const struct figures *figures, uint32_t pe)
{
    return pe / (figures->columns * figures->rows);
}

static struct position position(const struct figures *figures, uint32_t pe)
{
    const uint32_t chip = route_chip(figures, pe);
    const uint32_t local = pe % (figures->columns * figures->rows);
    return (struct position){chip % figures->chip_columns, chip / figures->chip_columns, local % figures->columns,
                             local / figures->columns};
}

static uint32_t number(const struct figures *figures, struct position at)
{
    const uint32_t chip = at.chip_y * figures->chip_columns + at.chip_x;
    return (chip * figures->rows + at.y) * figures->columns + at.x;
}

static enum direction towards(struct position from, struct position to)
{
    if (from.chip_x != to.chip_x) {
        return from.chip_x < to.chip_x ? EAST : WEST;
    }
    if (from.chip_y != to.chip_y) {
        return from.chip_y < to.chip_y ? SOUTH : NORTH;
    }
    if (from.x != to.x) {
        return from.x < to.x ? EAST : WEST;
    }
    return from.y < to.y ? SOUTH : NORTH;
}

/* One further along an axis of `count`; true if that is on the next chip. */
static bool move(uint32_t *at, uint32_t *chip, uint32_t count, bool up)
{
    const bool leaves = *at == (up ? count - 1 : 0);
    if (leaves) {
        *at = up ? 0 : count - 1;
        *chip += up ? 1U : UINT32_MAX;
    } else {
        *at += up ? 1U : UINT32_MAX;
    }
    return leaves;
}

struct step route_step(const struct figures *figures, uint32_t from, uint32_t to)
{
    struct position at = position(figures, from);
    const enum direction direction = towards(at, position(figures, to));
    const bool up = direction == EAST || direction == SOUTH;
    const bool leaves = direction == EAST || direction == WEST ? move(&at.x, &at.chip_x, figures->columns, up)
                                                               : move(&at.y, &at.chip_y, figures->rows, up);
    return (struct step){number(figures, at), direction, leaves};
}
