/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The trace of a run, recorded on request. */
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "need.h"

struct trace {
    bool on;
    struct trace_record *records;
    size_t count, room;
};

bool trace_is_on(const struct mesh *mesh)
{
    return mesh->trace != NULL && mesh->trace->on;
}

void trace_record(struct mesh *mesh, struct trace_record record)
{
    struct trace *trace = mesh->trace;
    if (!trace_is_on(mesh)) {
        return;
    }
    trace->records = grow(trace->records, &trace->room, trace->count + 1, sizeof record);
    trace->records[trace->count++] = record;
}

void trace_switch(struct mesh *mesh, bool on)
{
    if (mesh->trace == NULL) {
        mesh->trace = needed(calloc(1, sizeof *mesh->trace));
    }
    mesh->trace->on = on;
}

enum { APART = 256 }; /* largest distance of marks with a common hook, in bytes of code */

static uint8_t mark_bit(uint64_t address)
{
    return (uint8_t)(1U << (address / 2 % 8));
}

bool trace_is_marked(const struct pe *pe, uint32_t address)
{
    return pe->marks != NULL && (pe->marks[(address - pe->code_base) / 16] & mark_bit(address)) != 0;
}

static void on_mark(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core, (void)size;
    if (!trace_is_marked(pe, (uint32_t)address) || pe->stop != STOP_NONE) { /* stop: the block did not start */
        return;
    }
    alone_at(pe, (uint32_t)address);
    const uint64_t time = blocks_time_at(pe, (uint32_t)address);
    trace_record(pe->mesh, (struct trace_record){time, time, TRACE_MARK, pe->number, (uint32_t)address, 0, 0, 0});
}

static void look_at(struct pe *pe, uint64_t first, uint64_t last)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    uc_hook hook;
    unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_mark, pe, first, last);
    unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), first, last + 2);
}

/* Mark instructions. Unicorn calls every hook at every hooked instruction, so marks close together share a hook. */
void trace_mark(struct pe *pe, const uint32_t *addresses, size_t count)
{
    if (pe->marks == NULL) {
        pe->marks = needed(calloc(pe->mesh->figures.code_bytes / 16 + 1, 1));
    }
    for (size_t i = 0, first = 0; i < count; i++) {
        pe->marks[(addresses[i] - pe->code_base) / 16] |= mark_bit(addresses[i]);
        if (i + 1 == count || addresses[i + 1] - addresses[i] > APART) {
            look_at(pe, addresses[first], addresses[i]);
            first = i + 1;
        }
    }
}

size_t trace_take(struct mesh *mesh, struct trace_record *records, size_t room)
{
    struct trace *trace = mesh->trace;
    if (trace == NULL) {
        return 0;
    }
    const size_t taken = trace->count < room ? trace->count : room;
    memcpy(records, trace->records, taken * sizeof *records);
    memmove(trace->records, trace->records + taken, (trace->count - taken) * sizeof *records);
    trace->count -= taken;
    return taken;
}

void trace_free(struct mesh *mesh)
{
    if (mesh->trace != NULL) {
        free(mesh->trace->records);
        free(mesh->trace);
    }
}
