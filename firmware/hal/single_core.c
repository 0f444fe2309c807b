/* SPDX-License-Identifier: Apache-2.0 */
/* Stock boards: one core with a link, or several cores that share memory. The clock wraps every 2^32 ticks. */
#include "single_core.h"

#include "board.h"
#include "core.h"
#include "hal.h"
#ifdef BOARD_NOC_BASE
#include "noc.h"
#endif

/* Cycles until the bytes in a UART's buffer are on the wire. */
enum { CYCLES_TO_SEND = 4 * 10 * (BOARD_CLOCK_HZ / BOARD_UART_BAUD) };

static uint64_t ticks_before; /* up to `last_value` */
static uint32_t last_value;
static uint32_t instructions_per_1024_ticks; /* 0 on silicon, where a tick is a cycle and instructions are not counted */

void clock_begin(void)
{
    last_value = clock_now();
    if (BOARD_INSTRUCTIONS_PER_1024_TICKS != 0U && core_is_qemu()) {
        instructions_per_1024_ticks = BOARD_INSTRUCTIONS_PER_1024_TICKS;
    }
}

/* Exact if called once per wrap of the clock (hal_wait does). */
uint64_t hal_cycles(void)
{
    const uint32_t value = clock_now();
    ticks_before += value - last_value;
    last_value = value;
    return BOARD_CYCLES_PER_1024_TICKS == 1024U ? ticks_before : ticks_before * BOARD_CYCLES_PER_1024_TICKS / 1024U;
}

void hal_count(struct hal_counters *counters)
{
    counters->cycles = hal_cycles();
    counters->instructions = counters->cycles * instructions_per_1024_ticks / 1024U;
    counters->asleep = 0;
}

void hal_wait(void)
{
    /* No event wakes the core on these boards: waiting is polling. */
    (void)hal_cycles();
}

/* These boards have no loader. */
bool hal_is_on_trial(void)
{
    return false;
}

void hal_confirm(void)
{
}

bool hal_may_be_read(uint32_t address, uint32_t bytes)
{
    (void)address, (void)bytes;
    return false;
}

_Noreturn void hal_reset(void)
{
    const uint64_t sent = hal_cycles() + CYCLES_TO_SEND;
    while (hal_cycles() < sent) {
    }
    core_restart();
}

#ifdef BOARD_NOC_BASE
uint32_t hal_pe(void)
{
    return core_number();
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    return noc_copy(pe, address, hal_pe(), (uint32_t)to, bytes) == 0;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    return noc_copy(hal_pe(), (uint32_t)from, pe, address, bytes) == 0;
}

bool hal_link_present(void)
{
    return hal_pe() == BOARD_ROOT_PE;
}
#else
uint32_t hal_pe(void)
{
    return 0;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    (void)pe, (void)address, (void)to, (void)bytes;
    return false;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    (void)pe, (void)address, (void)from, (void)bytes;
    return false;
}

bool hal_link_present(void)
{
    return true;
}
#endif
