/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What happens when, written down while it happens, for whoever asked for it. */
#include <stdlib.h>
#include <string.h>

#include "mesh.h"

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
        mesh->trace = calloc(1, sizeof *mesh->trace);
    }
    mesh->trace->on = on;
}

static void on_mark(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core, (void)size;
    if (pe->stop != STOP_NONE) { /* not yet: the block was left before it began */
        return;
    }
    const uint64_t time = blocks_time_at(pe, (uint32_t)address);
    trace_record(pe->mesh, (struct trace_record){time, time, TRACE_MARK, pe->number, (uint32_t)address, 0, 0, 0});
}

void trace_mark(struct pe *pe, uint32_t address)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    uc_hook hook;
    unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_mark, pe, (uint64_t)address, (uint64_t)address);
    unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)address, (uint64_t)address + 2);
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
