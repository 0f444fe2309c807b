/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Scheduling: the PE or event furthest behind runs next. */
#include <time.h>

#include "mesh.h"

/* QUANTUM: most cycles that a PE may run ahead of the others. Larger is faster; results do not depend on the value. */
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

/* Process all events up to and including a cycle, for the running PE, which is not in the queue. False if another PE is
 * behind the cycle. The running PE must then wait. Otherwise it would miss events, and the other PE would see later
 * events too early. */
bool schedule_settle(struct mesh *mesh, uint64_t time)
{
    while (events_first_time(mesh) <= time && events_first_time(mesh) <= first_time(mesh)) {
        events_happen(mesh);
    }
    return first_time(mesh) >= time;
}

uint64_t schedule_slice_end(const struct pe *pe, uint64_t until)
{
    const uint64_t end = pe->cycles + QUANTUM, event = events_first_time(pe->mesh);
    const uint64_t stop = end < until ? end : until;
    return devices_interrupt(pe) && event < stop ? event : stop;
}

/* Queue a PE again after its slice. */
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

/* Take the PEs behind a cycle out of the queue. Returns their number. */
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

/* The cycle of the last event, or of the last PE's falling asleep. */
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

/* Whether a fault, the board itself or the debugger has ended the run. */
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

/* Whether time passes on the board. Time stands still, and nothing is overdue, while all PEs sleep until the host sends
 * a byte. */
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
