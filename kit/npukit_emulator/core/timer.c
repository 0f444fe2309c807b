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

const char *timer_attach(struct pe *pe)
{
    const struct bus_port port = {NULL, NULL, read_timer, write_timer, NULL, false};
    return bus_attach(pe, pe->mesh->figures.timer_base, TIMER_BYTES, port);
}
