/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Events at later cycles (events.c). */
#ifndef EVENTS_H
#define EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEVER UINT64_MAX

struct mesh;

/* Rank before all others. */
#define RANK_FIRST UINT32_MAX

struct event {
    uint64_t time;
    uint32_t rank; /* order of events at the same cycle, lowest first */
    uint64_t sequence;
    void (*happen)(struct mesh *mesh, void *subject);
    void *subject;
};

struct events {
    struct event *heap;
    size_t count, room;
    uint64_t sequence;
};

void events_post(struct mesh *mesh, uint64_t time, uint32_t rank, void (*happen)(struct mesh *, void *), void *subject);
uint64_t events_first_time(const struct mesh *mesh);
void events_happen(struct mesh *mesh);

#endif
