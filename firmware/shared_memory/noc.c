/* SPDX-License-Identifier: Apache-2.0 */
/* noc.h for cores that share memory. noc_send() copies the bytes before returning. Each flag is a row of words in a
 * separate memory, one word per incrementing core: no two cores write to the same word. */
#include "noc.h"

#include <string.h>

#include "board.h"
#include "core_events.h"
#include "hal.h"
#include "rpc.h"

enum { LOOKS = 64 }; /* reads of a flag between two looks at the host link */
enum { CALL_FLAG = BOARD_NOC_FLAGS - 2 };

struct counts {
    volatile uint32_t of[BOARD_NOC_FLAGS];
};

/* Indexed by the core that owns the flags, then by the core that increments them. */
#define COUNTS ((struct counts(*)[BOARD_NOC_PES])BOARD_NOC_BASE)

/* Counts consumed of each flag. */
static uint32_t taken[BOARD_NOC_FLAGS];

void noc_clear(void)
{
    for (uint32_t pe = 0; pe < BOARD_NOC_PES * BOARD_NOC_PES; pe++) {
        for (uint32_t flag = 0; flag < BOARD_NOC_FLAGS; flag++) {
            COUNTS[0][pe].of[flag] = 0;
        }
    }
    core_order_memory();
}

static void count(uint32_t pe, uint32_t flag)
{
    if (flag != NOC_NO_FLAG && (pe & NOC_DRAM) == 0) {
        COUNTS[pe][hal_pe()].of[flag]++;
    }
}

static uint32_t counted(uint32_t flag)
{
    const struct counts *const own = COUNTS[hal_pe()];
    uint32_t sum = 0;
    for (uint32_t pe = 0; pe < BOARD_NOC_PES; pe++) {
        sum += own[pe].of[flag];
    }
    return sum;
}

/* DRAM is a part of the shared memory. */
static uint8_t *place(uint32_t pe, uint32_t address)
{
    return (uint8_t *)((pe & NOC_DRAM) != 0 ? BOARD_NOC_DRAM + address : address);
}

static void copy_to(const struct noc_destination *there, const struct noc_descriptor *what)
{
    const uint8_t *from = place(what->source_pe, (uint32_t)what->source);
    uint8_t *to = place(there->pe, there->address);
    if (what->row_bytes == 0) {
        return;
    }
    for (uint32_t row = 0; row < what->rows; row++) {
        memcpy(to, from, what->row_bytes);
        from += what->source_stride;
        to += what->destination_stride;
    }
}

static void send(const struct noc_descriptor *what)
{
    const struct noc_destination one = {what->destination_pe, what->destination};
    const bool several = (what->options & NOC_MULTICAST) != 0;
    const struct noc_destination *const list = several ? (const struct noc_destination *)what->destination_pe : &one;
    const uint32_t destinations = several ? what->destination : 1;
    for (uint32_t i = 0; i < destinations; i++) {
        copy_to(&list[i], what);
    }
    core_order_memory();
    for (uint32_t i = 0; i < destinations; i++) {
        count(list[i].pe, what->destination_flag);
    }
    count(hal_pe(), what->source_flag);
}

int32_t noc_send(const struct noc_descriptor *first)
{
    for (const struct noc_descriptor *each = first; each != NULL; each = each->next) {
        send(each);
    }
    return 0;
}

int32_t noc_signal(uint32_t pe, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    (void)tag;
    core_order_memory();
    count(pe, flag);
    count(hal_pe(), own_flag);
    return 0;
}

int32_t noc_signal_all(const struct noc_destination *to, uint32_t number, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    for (uint32_t i = 0; i < number; i++) {
        noc_signal(to[i].pe, flag, NOC_NO_FLAG, tag);
    }
    count(hal_pe(), own_flag);
    return 0;
}

static bool has_counted(uint32_t flag, uint32_t due)
{
    return (int32_t)(counted(flag) - due) >= 0;
}

/* Poll the host link while waiting, so that the host can break off a wait without end. */
int32_t noc_wait(uint32_t flag, uint32_t number)
{
    const uint32_t due = taken[flag] + number;
    for (uint32_t look = 1; !has_counted(flag, due); look++) {
        if (look % LOOKS != 0) {
            continue;
        }
        if (hal_pe() == BOARD_NETWORK_PE && rpc_break()) {
            return NOC_GIVEN_UP;
        }
        core_yield();
    }
    core_order_memory();
    taken[flag] = due;
    return 0;
}

int32_t noc_copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes)
{
    memcpy(place(to_pe, to), place(from_pe, from), bytes);
    core_order_memory();
    return 0;
}

int32_t noc_call(uint32_t pe, uint32_t to, const void *from, uint32_t bytes)
{
    noc_copy(hal_pe(), (uint32_t)from, pe, to, bytes);
    count(pe, CALL_FLAG);
    return 0;
}

uint32_t noc_calls(void)
{
    taken[CALL_FLAG] = counted(CALL_FLAG);
    return taken[CALL_FLAG];
}
