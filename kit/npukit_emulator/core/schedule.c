/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Who runs next: always the PE, or the event, that is furthest behind. */
#include <time.h>

#include "mesh.h"

/* How far a PE may run ahead of the others in one go. Larger is faster; results do not depend on it. */
enum { QUANTUM = 20000, SLICES_BETWEEN_CLOCKS = 256 };

static bool behind(const struct pe *a, const struct pe *b)
{
    return a->cycles != b->cycles ? a->cycles < b->cycles : a->number < b->number;
}

void schedule_add(struct mesh *mesh, struct pe *pe)
{
    struct pe **queue = mesh->queue;
    size_t place = mesh->queue_count++;
    while (place > 0 && behind(pe, queue[(place - 1) / 2])) {
        queue[place] = queue[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    queue[place] = pe;
}

static struct pe *take_first(struct mesh *mesh)
{
    struct pe **queue = mesh->queue;
    struct pe *first = queue[0];
    struct pe *last = queue[--mesh->queue_count];
    size_t place = 0;
    for (size_t child = 1; child < mesh->queue_count; child = 2 * place + 1) {
        if (child + 1 < mesh->queue_count && behind(queue[child + 1], queue[child])) {
            child++;
        }
        if (!behind(queue[child], last)) {
            break;
        }
        queue[place] = queue[child];
        place = child;
    }
    queue[place] = last;
    return first;
}

static uint64_t first_time(const struct mesh *mesh)
{
    return mesh->queue_count == 0 ? NEVER : mesh->queue[0]->cycles;
}

/* Let everything happen up to and including a cycle, for the PE that runs and is not in the queue.
 * False if another PE is still behind that cycle: then the one that runs must wait, or it would see too little, and let
 * the other see too much. */
bool schedule_settle(struct mesh *mesh, uint64_t time)
{
    while (events_first_time(mesh) <= time && events_first_time(mesh) <= first_time(mesh)) {
        events_happen(mesh);
    }
    return first_time(mesh) >= time;
}

uint64_t schedule_slice_end(const struct pe *pe, uint64_t until)
{
    const uint64_t end = pe->cycles + QUANTUM;
    return end < until ? end : until;
}

/* After it has run. */
void schedule_add_running(struct mesh *mesh, struct pe *pe)
{
    if (pe->state == PE_RUNNING) {
        schedule_add(mesh, pe);
    } else if (pe->state == PE_ASLEEP) {
        pe_post_tick(pe);
    }
}

static void run_first(struct mesh *mesh, uint64_t until)
{
    struct pe *pe = take_first(mesh);
    if (pe->state != PE_RUNNING) {
        return; /* killed */
    }
    mesh->now = pe->cycles;
    pe_run(pe, schedule_slice_end(pe, until));
    schedule_add_running(mesh, pe);
}

/* Takes the PEs that are behind a cycle out of the queue. Returns how many. */
size_t schedule_take_behind(struct mesh *mesh, uint64_t until, struct pe **batch)
{
    size_t count = 0;
    while (first_time(mesh) < until) {
        struct pe *pe = take_first(mesh);
        if (pe->state == PE_RUNNING) {
            batch[count++] = pe;
        }
    }
    return count;
}

/* When the last PE fell asleep, or something last happened. */
static uint64_t last_activity(const struct mesh *mesh)
{
    uint64_t last = mesh->now;
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        last = mesh->pes[i].cycles > last ? mesh->pes[i].cycles : last;
    }
    return last;
}

static double clock_seconds(void)
{
    struct timespec time;
    timespec_get(&time, TIME_UTC);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static bool out_of_time(uint32_t *slices, double deadline)
{
    return ++*slices % SLICES_BETWEEN_CLOCKS == 0 && clock_seconds() >= deadline;
}

/* Whether the board itself has ended its time, or its debugger has. */
static bool stands_still(const struct mesh *mesh)
{
    return mesh->faulted != NULL || mesh->end != END_NONE || mesh->debug.stopped;
}

static int why_it_stands_still(const struct mesh *mesh)
{
    if (mesh->faulted != NULL) {
        return RAN_TO_FAULT;
    }
    if (mesh->end != END_NONE) {
        return mesh->end == END_RESTART ? RAN_TO_RESTART : mesh->end == END_WATCHDOG ? RAN_TO_WATCHDOG : RAN_TO_POWER_CUT;
    }
    return RAN_TO_STOP;
}

/* Where all sleep until the host says something, its time is not the board's: nothing is overdue then. */
static bool time_passes(const struct mesh *mesh, uint64_t until)
{
    return until != NEVER || events_first_time(mesh) != NEVER || first_time(mesh) != NEVER;
}

int schedule_run(struct mesh *mesh, uint64_t until, bool stop_at_output, double seconds)
{
    const double deadline = clock_seconds() + seconds;
    uint32_t slices = 0;
    while (!stands_still(mesh)) {
        const uint64_t event = events_first_time(mesh);
        const uint64_t core = first_time(mesh);
        const uint64_t injection = inject_next(mesh);
        const uint64_t watchdog = flash_watchdog(mesh);
        const uint64_t stop = watchdog < until ? watchdog : until;
        const uint64_t end = injection < stop ? injection : stop;
        if (stop_at_output && mesh->output) {
            return RAN_TO_OUTPUT;
        }
        if (stop_at_output && event == NEVER && core == NEVER) {
            mesh->now = last_activity(mesh);
            return RAN_TO_IDLE;
        }
        if (watchdog <= event && watchdog <= core && watchdog <= until && time_passes(mesh, until)) {
            flash_watchdog_expires(mesh);
            continue;
        }
        if (event >= until && core >= until) {
            mesh->now = until == NEVER ? last_activity(mesh) : until;
            return until == NEVER ? RAN_TO_IDLE : RAN_TO_CYCLE;
        }
        if (injection <= event && injection <= core) {
            inject_due(mesh, injection);
        } else if (event <= core) {
            events_happen(mesh);
        } else if (!side_by_side_run(mesh, event < end ? event : end, end)) {
            run_first(mesh, end);
        }
        if (out_of_time(&slices, deadline)) {
            return RAN_OUT_OF_TIME;
        }
    }
    return why_it_stands_still(mesh);
}
