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

static uint32_t port_of(struct way step)
{
    if (step.x != 0 && step.y != 0) {
        return step.x > 0 ? PORT_SOUTH_EAST : PORT_NORTH_WEST;
    }
    return step.x != 0 ? (step.x > 0 ? PORT_EAST : PORT_WEST) : step.y > 0 ? PORT_SOUTH : PORT_NORTH;
}

static struct way way_of(uint32_t port)
{
    static const struct way ways[PORTS] = {
        [PORT_NORTH] = {0, -1}, [PORT_EAST] = {1, 0},       [PORT_SOUTH] = {0, 1},
        [PORT_WEST] = {-1, 0},  [PORT_SOUTH_EAST] = {1, 1}, [PORT_NORTH_WEST] = {-1, -1},
    };
    return ways[port];
}

uint32_t route_opposite(uint32_t port)
{
    static const uint32_t opposites[PORTS] = {
        [PORT_NORTH] = PORT_SOUTH, [PORT_EAST] = PORT_WEST,
        [PORT_SOUTH] = PORT_NORTH, [PORT_WEST] = PORT_EAST,
        [PORT_SOUTH_EAST] = PORT_NORTH_WEST, [PORT_NORTH_WEST] = PORT_SOUTH_EAST,
    };
    return opposites[port];
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

static bool leaves(uint32_t at, uint32_t count, int32_t step)
{
    return step != 0 && to_side(at, count, step) == 0;
}

static bool is_last(uint32_t chip, uint32_t count, int32_t step)
{
    return step != 0 && to_side(chip, count, step) == 0;
}

/* Take a step, to the next chip at a side of the chip. A diagonal step always goes to the next chip. */
static struct step take(const struct figures *figures, struct position at, struct way way)
{
    struct step step = {.port = port_of(way)};
    step.leaves_chip = leaves(at.x, figures->columns, way.x) || leaves(at.y, figures->rows, way.y);
    if (step.leaves_chip) {
        step.goes_around = is_last(at.chip_x, figures->chip_columns, way.x) || is_last(at.chip_y, figures->chip_rows, way.y);
        at.chip_x = one_on(at.chip_x, figures->chip_columns, way.x);
        at.chip_y = one_on(at.chip_y, figures->chip_rows, way.y);
    }
    at.x = one_on(at.x, figures->columns, way.x);
    at.y = one_on(at.y, figures->rows, way.y);
    step.next = number(figures, at);
    return step;
}

struct step route_neighbour(const struct figures *figures, uint32_t from, uint32_t port)
{
    return take(figures, position(figures, from), way_of(port));
}

/* On a grid: along x over the whole board, then along y. */
static struct step step_on_grid(const struct figures *figures, struct position at, struct position end)
{
    const int32_t x = (int32_t)(end.chip_x * figures->columns + end.x) - (int32_t)(at.chip_x * figures->columns + at.x);
    const int32_t y = (int32_t)(end.chip_y * figures->rows + end.y) - (int32_t)(at.chip_y * figures->rows + at.y);
    return take(figures, at, first_step((struct way){x, y}, false));
}

/* On a torus: to the side of the chip towards the next chip, or within the last chip. */
static struct step step_on_torus(const struct figures *figures, struct position at, struct position end)
{
    const struct way chips = chips_to_go(figures, at, end), over = first_step(chips, is_diagonal(figures, chips));
    const bool elsewhere = chips.x != 0 || chips.y != 0;
    const struct way side = {to_side(at.x, figures->columns, over.x), to_side(at.y, figures->rows, over.y)};
    const struct way inside = {(int32_t)end.x - (int32_t)at.x, (int32_t)end.y - (int32_t)at.y};
    const struct way here = elsewhere ? side : inside;
    const bool crosses = elsewhere && here.x == 0 && here.y == 0;
    struct step step = take(figures, at, crosses ? over : first_step(here, false));
    step.part = !elsewhere ? PART_CHIP : over.x != 0 && over.y != 0 ? PART_DIAGONAL : over.x != 0 ? PART_X : PART_Y;
    return step;
}

struct step route_step(const struct figures *figures, uint32_t from, uint32_t to)
{
    const struct position at = position(figures, from), end = position(figures, to);
    return figures->hexagonal_torus ? step_on_torus(figures, at, end) : step_on_grid(figures, at, end);
}
