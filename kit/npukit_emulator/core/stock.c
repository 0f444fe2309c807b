/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Stock boards: registers that firmware sets once and that change nothing here, and the restart of the board. */
#include "mesh.h"

enum { MOST_PAGES = 6, PAGE_BYTES = 0x1000, WATCHPOINTS = 0xE0001000, COMPARATORS = 4 << 28 };
enum { TEST_DEVICE = 0x00100000, TEST_RESET = 0x7777 };

/* Pages of registers, in the order of `console`. */
static const uint32_t pages[][MOST_PAGES] = {
    {0},
    {0},
    {0x58100000},             /* the system counter's control */
    {0x40000000, 0x50000000}, /* the crystal, pins */
    {TEST_DEVICE},
    {0x40023000, 0x40020000}, /* clocks, pins */
};

/* End the board's time, if it has no boot controller that would. */
void stock_restart(struct pe *pe)
{
    if (pe->mesh->figures.console != 0) {
        schedule_settle(pe->mesh, blocks_time(pe)); /* bytes that have been sent meanwhile */
        pe->mesh->end = END_RESTART;
        pe->stop = STOP_LIMIT;
        pe->mesh->unicorn->emu_stop(pe->core);
    }
}

static uint32_t read_nothing(struct pe *pe, void *device, uint32_t offset)
{
    (void)pe, (void)device, (void)offset;
    return 0;
}

static void write_nothing(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)offset;
    if (device != NULL && value == TEST_RESET) {
        stock_restart(pe);
    }
}

/* The watchpoint unit of a Cortex-M, whose cycle counter runs always. */
static uint32_t read_watchpoints(struct pe *pe, void *device, uint32_t offset)
{
    (void)device;
    return offset == 0 ? COMPARATORS : offset == 4 ? (uint32_t)blocks_time(pe) : 0;
}

const char *stock_attach(struct pe *pe)
{
    const uint32_t console = pe->mesh->figures.console;
    const char *complaint = NULL;
    for (uint32_t i = 0; i < MOST_PAGES && pages[console][i] != 0 && complaint == NULL; i++) {
        void *const restarts = pages[console][i] == TEST_DEVICE ? pe : NULL;
        const struct bus_port port = {NULL, restarts, read_nothing, write_nothing, NULL, false, true, 0};
        complaint = bus_attach(pe, pages[console][i], PAGE_BYTES, port);
    }
    if (console != 0 && !pe->mesh->figures.riscv && complaint == NULL) {
        const struct bus_port port = {NULL, NULL, read_watchpoints, write_nothing, NULL, false, false, 0};
        complaint = bus_attach(pe, WATCHPOINTS, PAGE_BYTES, port);
    }
    return complaint;
}
