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

/* Columns and rows to go. */
struct way {
    int32_t x, y;
};

static int32_t sign(int32_t value)
{
    return (value > 0) - (value < 0);
}

static int32_t length(int32_t value)
{
    return value < 0 ? -value : value;
}

static bool is_diagonal(const struct figures *figures, struct way way)
{
    return figures->hexagonal_torus && sign(way.x) * sign(way.y) > 0;
}

static int32_t borders(const struct figures *figures, struct way way)
{
    const int32_t x = length(way.x), y = length(way.y);
    return !is_diagonal(figures, way) ? x + y : x > y ? x : y;
}

static struct way chips_to_go(const struct figures *figures, struct position from, struct position to)
{
    const struct way direct = {(int32_t)to.chip_x - (int32_t)from.chip_x, (int32_t)to.chip_y - (int32_t)from.chip_y};
    const struct way around = {direct.x - sign(direct.x) * (int32_t)figures->chip_columns,
                               direct.y - sign(direct.y) * (int32_t)figures->chip_rows};
    const struct way others[] = {{direct.x, around.y}, {around.x, direct.y}, around};
    struct way best = direct;
    for (uint32_t i = 0; i < 3 && figures->hexagonal_torus; i++) {
        best = borders(figures, others[i]) < borders(figures, best) ? others[i] : best;
    }
    return best;
}

/* The next step of a way that is not zero. */
static struct way first_step(struct way way, bool diagonal)
{
    return (struct way){sign(way.x), diagonal || way.x == 0 ? sign(way.y) : 0};
}

static enum direction direction_of(struct way step)
{
    if (step.x != 0 && step.y != 0) {
        return step.x > 0 ? SOUTH_EAST : NORTH_WEST;
    }
    return step.x != 0 ? (step.x > 0 ? EAST : WEST) : step.y > 0 ? SOUTH : NORTH;
}

/* The distance to the side of the chip towards `step`; 0 for no step. */
static int32_t to_side(uint32_t at, uint32_t count, int32_t step)
{
    return step == 0 ? 0 : (step > 0 ? (int32_t)count - 1 : 0) - (int32_t)at;
}

static uint32_t one_on(uint32_t at, uint32_t count, int32_t step)
{
    return (uint32_t)((int32_t)(at + count) + step) % count;
}

struct step route_step(const struct figures *figures, uint32_t from, uint32_t to)
{
    struct position at = position(figures, from);
    const struct position end = position(figures, to);
    const struct way chips = chips_to_go(figures, at, end), over = first_step(chips, is_diagonal(figures, chips));
    const bool elsewhere = chips.x != 0 || chips.y != 0;
    const struct way here = elsewhere ? (struct way){to_side(at.x, figures->columns, over.x), to_side(at.y, figures->rows, over.y)}
                                      : (struct way){(int32_t)end.x - (int32_t)at.x, (int32_t)end.y - (int32_t)at.y};
    const bool leaves = elsewhere && here.x == 0 && here.y == 0;
    const struct way step = leaves ? over : first_step(here, false);
    at.x = one_on(at.x, figures->columns, step.x);
    at.y = one_on(at.y, figures->rows, step.y);
    if (leaves) {
        at.chip_x = one_on(at.chip_x, figures->chip_columns, step.x);
        at.chip_y = one_on(at.chip_y, figures->chip_rows, step.y);
    }
    return (struct step){number(figures, at), direction_of(step), leaves};
}
