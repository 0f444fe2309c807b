/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The timer: hardware manual, section 2. */
#include "mesh.h"

enum { TIMER_BYTES = 0x18, COUNTERS = 3, STOCK_TIMER_BYTES = 8 };

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

/* Of a stock board's timer: where the lower half of the count is, and the upper half, if it has one; which register takes
 * the count for the first, if that does not always show it; whether it counts down. In the order of `console`. */
static const struct counter {
    uint32_t low, high, capture;
    bool captures, down;
} counters[] = {
    {0},
    {4, 0, 0, false, true},      /* Arm's CMSDK timer */
    {0, 4, 0, false, false},     /* SSE-300's system timer */
    {0x540, 0, 0x40, true, false}, /* nRF51 */
    {0, 4, 0, false, false},     /* RISC-V's mtime */
    {0x24, 0, 0, false, false},  /* STM32F4's timer 2 */
};

static uint32_t read_counter(struct pe *pe, void *device, uint32_t offset)
{
    const struct counter *counter = device;
    const uint64_t time = counter->captures ? pe->captured : blocks_time(pe);
    if (offset == counter->low) {
        return (uint32_t)(counter->down ? UINT32_MAX - time : time);
    }
    return counter->high != 0 && offset == counter->high ? (uint32_t)(time >> 32) : 0;
}

static void write_counter(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    const struct counter *counter = device;
    (void)value;
    if (counter->captures && offset == counter->capture) {
        pe->captured = blocks_time(pe);
    }
}

const char *timer_attach(struct pe *pe)
{
    const uint32_t console = pe->mesh->figures.console;
    if (console != 0) {
        const struct bus_port port = {NULL, (void *)&counters[console], read_counter, write_counter, NULL, false, false, 0};
        return bus_attach(pe, pe->mesh->figures.timer_base, STOCK_TIMER_BYTES, port);
    }
    const struct bus_port port = {NULL, NULL, read_timer, write_timer, NULL, false, false, 0};
    return bus_attach(pe, pe->mesh->figures.timer_base, TIMER_BYTES, port);
}
