/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A binary heap of events at later cycles. */
#include "mesh.h"

static bool before(const struct event *a, const struct event *b)
{
    if (a->time != b->time) {
        return a->time < b->time;
    }
    return a->rank != b->rank ? a->rank + 1 < b->rank + 1 : a->sequence < b->sequence;
}

static void rise(struct event *heap, size_t place, struct event event)
{
    while (place > 0 && before(&event, &heap[(place - 1) / 2])) {
        heap[place] = heap[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    heap[place] = event;
}

static void sink(struct event *heap, size_t count, struct event event)
{
    size_t place = 0;
    for (size_t child = 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && before(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!before(&heap[child], &event)) {
            break;
        }
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = event;
}

void events_post(struct mesh *mesh, uint64_t time, uint32_t rank, void (*happen)(struct mesh *, void *), void *subject)
{
    struct events *events = &mesh->events;
    events->heap = grow(events->heap, &events->room, events->count + 1, sizeof *events->heap);
    rise(events->heap, events->count, (struct event){time, rank, events->sequence++, happen, subject});
    events->count++;
}

uint64_t events_first_time(const struct mesh *mesh)
{
    return mesh->events.count == 0 ? NEVER : mesh->events.heap[0].time;
}

void events_happen(struct mesh *mesh)
{
    struct events *events = &mesh->events;
    const struct event first = events->heap[0];
    events->count--;
    if (events->count > 0) {
        sink(events->heap, events->count, events->heap[events->count]);
    }
    mesh->before = mesh->now;
    mesh->now = first.time;
    first.happen(mesh, first.subject);
}
