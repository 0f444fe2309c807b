/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The trace of a run (trace.c). */
#ifndef TRACE_H
#define TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh;
struct pe;

enum trace_kind {
    TRACE_MARK = 1,     /* a PE reaches the instruction at `a` */
    TRACE_SLEEP = 2,    /* a PE's core sleeps */
    TRACE_WORK = 3,     /* accelerator `a` of a PE works */
    TRACE_TRANSFER = 4, /* a PE's descriptor moves `c` bytes from place `a` to `b`, after `queued` cycles */
    TRACE_LINK = 5,     /* `c` bytes take the link from the PE to PE `a`; `b`: link of the border */
    TRACE_DRAM = 6,     /* the DRAM of chip `pe` is taken */
};

struct trace_record {
    uint64_t from, to;
    uint32_t kind, pe, a, b, c, queued;
};

struct trace; /* trace.c */

/* Add a record, if the trace is on. */
void trace_record(struct mesh *mesh, struct trace_record record);
void trace_switch(struct mesh *mesh, bool on);
bool trace_is_on(const struct mesh *mesh);

/* Record from this cycle on when the PE reaches one of these instructions (ascending). */
void trace_mark(struct pe *pe, const uint32_t *addresses, size_t count);
bool trace_is_marked(const struct pe *pe, uint32_t address);
size_t trace_take(struct mesh *mesh, struct trace_record *records, size_t room);
void trace_free(struct mesh *mesh);

#endif
