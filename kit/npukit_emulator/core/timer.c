/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The timer: hardware manual, section 2. */
#include "mesh.h"

enum { TIMER_BYTES = 0x18, COUNTERS = 3 };

static uint32_t read_timer(struct pe *pe, void *device, uint32_t offset)
{
    (void)device;
    if (offset >= TIMER_BYTES) {
        return 0;
    }
    const uint32_t counter = offset / 8;
    if (offset % 8 == 4) {
        return pe->timer_high[counter];
    }
    const uint64_t values[COUNTERS] = {blocks_time(pe), blocks_instructions(pe), pe->asleep};
    pe->timer_high[counter] = (uint32_t)(values[counter] >> 32);
    return (uint32_t)values[counter];
}

static void write_timer(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)pe, (void)device, (void)offset, (void)value;
}

/* ---- the timer of a stock board, at addresses of the board file ---- */

static uint64_t ticks(const struct figures *figures, uint64_t cycles)
{
    return cycles / figures->clock_hz * figures->timer_hz + cycles % figures->clock_hz * figures->timer_hz / figures->clock_hz;
}

/* False if no register of the timer is at `address`. */
bool timer_read(struct pe *pe, uint32_t address, uint32_t *value)
{
    const struct figures *figures = &pe->mesh->figures;
    const uint32_t offset = address - (uint32_t)figures->timer_base;
    const bool low = offset == figures->timer_count, high = offset == figures->timer_high;
    if (low || high) {
        const uint64_t count = ticks(figures, figures->timer_capture != NOWHERE_AT ? pe->captured : blocks_time(pe));
        *value = (uint32_t)(figures->timer_down ? UINT32_MAX - count : high ? count >> 32 : count);
    }
    return low || high;
}

void timer_write(struct pe *pe, uint32_t address)
{
    if (address - (uint32_t)pe->mesh->figures.timer_base == pe->mesh->figures.timer_capture) {
        pe->captured = blocks_time(pe);
    }
}

const char *timer_attach(struct pe *pe)
{
    const struct bus_port port = {NULL, NULL, read_timer, write_timer, NULL, false, false, 0};
    return bus_attach(pe, pe->mesh->figures.timer_base, TIMER_BYTES, port);
}
