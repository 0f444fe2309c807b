/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What happened when (trace.c). */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh;
struct pe;

enum trace_kind {
    TRACE_MARK = 1,     /* `a`: the instruction that a PE comes to */
    TRACE_SLEEP = 2,    /* of a PE's core */
    TRACE_WORK = 3,     /* of a PE's accelerator, `a` */
    TRACE_TRANSFER = 4, /* of a descriptor of a PE, from place `a` to place `b`: `c` bytes, `queued` before they left */
    TRACE_LINK = 5,     /* taken, from the PE to the PE `a`; `b`: which of a border's links; `c` bytes */
    TRACE_DRAM = 6,     /* taken, of chip `pe` */
};

struct trace_record {
    uint64_t from, to;
    uint32_t kind, pe, a, b, c, queued;
};

struct trace; /* trace.c */

/* Does nothing unless the trace is on. */
void trace_record(struct mesh *mesh, struct trace_record record);
void trace_switch(struct mesh *mesh, bool on);
bool trace_is_on(const struct mesh *mesh);

/* From now on, say when the PE comes to one of these instructions, which ascend. */
void trace_mark(struct pe *pe, const uint32_t *addresses, size_t count);
bool trace_is_marked(const struct pe *pe, uint32_t address);
size_t trace_take(struct mesh *mesh, struct trace_record *records, size_t room);
void trace_free(struct mesh *mesh);

#endif
