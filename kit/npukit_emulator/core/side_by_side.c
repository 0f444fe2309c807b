/* SPDX-License-Identifier: GPL-2.0-only
 *
 * PEs that run side by side, on the host's cores. Each PE runs until the next access that concerns other PEs, and stops
 * before the access. Results depend neither on the order of PEs nor on the number of workers. */
#include <stdlib.h>

#include "api.h"
#include "need.h"

#ifndef _WIN32
#include <pthread.h>
#endif

/* ROUNDS_OF_REST: rounds of the schedule before the next run side by side, after a run of fewer than WORTH_INSTRUCTIONS
 * instructions per PE. */
enum { ROUNDS_OF_REST = 256, WORTH_INSTRUCTIONS = 4000, MOST_WORKERS = 16 };

struct crew {
    struct pe **batch;
    uint32_t rest;
    uint32_t workers; /* including the caller */
#ifndef _WIN32
    pthread_mutex_t lock;
    pthread_cond_t begin, end;
    pthread_t threads[MOST_WORKERS];
    size_t count, next, busy;
    uint64_t until, round;
    bool leaves;
#endif
};

static void run_alone(struct pe *pe, uint64_t until)
{
    pe->alone = true;
    pe_run(pe, schedule_slice_end(pe, until));
    pe->alone = false;
}

#ifndef _WIN32

/* Run PEs of the batch until none is left. The lock is held on entry and exit. */
static void work(struct crew *crew)
{
    while (crew->next < crew->count) {
        struct pe *pe = crew->batch[crew->next++];
        pthread_mutex_unlock(&crew->lock);
        run_alone(pe, crew->until);
        pthread_mutex_lock(&crew->lock);
    }
}

static void *serve(void *argument)
{
    struct crew *crew = argument;
    uint64_t seen = 0;
    pthread_mutex_lock(&crew->lock);
    while (!crew->leaves) {
        if (crew->round == seen) {
            pthread_cond_wait(&crew->begin, &crew->lock);
            continue;
        }
        seen = crew->round;
        crew->busy++;
        work(crew);
        crew->busy--;
        pthread_cond_signal(&crew->end);
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static void run_batch(struct crew *crew, size_t count, uint64_t until)
{
    pthread_mutex_lock(&crew->lock);
    crew->count = count;
    crew->next = 0;
    crew->until = until;
    crew->round++;
    if (crew->workers > 1 && count > 1) {
        pthread_cond_broadcast(&crew->begin);
    }
    work(crew);
    while (crew->busy > 0) {
        pthread_cond_wait(&crew->end, &crew->lock);
    }
    pthread_mutex_unlock(&crew->lock);
}

static void hire(struct crew *crew)
{
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->begin, NULL);
    pthread_cond_init(&crew->end, NULL);
    uint32_t hired = 1;
    while (hired < crew->workers && pthread_create(&crew->threads[hired], NULL, serve, crew) == 0) {
        hired++;
    }
    crew->workers = hired;
}

static void dismiss(struct crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->leaves = true;
    pthread_cond_broadcast(&crew->begin);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 1; i < crew->workers; i++) {
        pthread_join(crew->threads[i], NULL);
    }
}

#else

static void run_batch(struct crew *crew, size_t count, uint64_t until)
{
    for (size_t i = 0; i < count; i++) {
        run_alone(crew->batch[i], until);
    }
}

static void hire(struct crew *crew)
{
    crew->workers = 1;
}

static void dismiss(struct crew *crew)
{
    (void)crew;
}

#endif

/* Set the number of workers. Results do not depend on the number. Call before the board runs. */
void mesh_set_workers(struct mesh *mesh, uint32_t workers)
{
    struct crew *crew = mesh->crew = needed(calloc(1, sizeof *crew));
    crew->batch = needed(calloc(mesh->pe_count, sizeof(struct pe *)));
    crew->workers = workers < 1 ? 1 : workers < MOST_WORKERS ? workers : MOST_WORKERS;
    hire(crew);
}

void side_by_side_end(struct mesh *mesh)
{
    if (mesh->crew != NULL) {
        dismiss(mesh->crew);
    }
}

/* Report the earliest fault of the batch, if any. */
static void report_fault(struct mesh *mesh, size_t count)
{
    struct pe *first = NULL;
    for (size_t i = 0; i < count; i++) {
        struct pe *each = mesh->crew->batch[i];
        const bool faulted = each->state == PE_FAULTED;
        const bool earlier = first == NULL || each->cycles < first->cycles ||
            (each->cycles == first->cycles && each->number < first->number);
        first = faulted && earlier ? each : first;
    }
    if (first != NULL) {
        pe_report_fault(first);
    }
}

/* Let all PEs behind a cycle run as far as each gets alone. False if this was not tried. */
bool side_by_side_run(struct mesh *mesh, uint64_t behind, uint64_t until)
{
    struct crew *crew = mesh->crew;
    if (crew == NULL || mesh->queue_count < 2 || trace_is_on(mesh) || mesh->debug.on) {
        return false;
    }
    if (crew->rest > 0) {
        crew->rest--;
        return false;
    }
    const size_t count = schedule_take_behind(mesh, behind, crew->batch);
    uint64_t before = 0, after = 0;
    for (size_t i = 0; i < count; i++) {
        before += crew->batch[i]->instructions;
    }
    run_batch(crew, count, until);
    for (size_t i = 0; i < count; i++) {
        after += crew->batch[i]->instructions;
        schedule_add_running(mesh, crew->batch[i]);
    }
    crew->rest = after - before < WORTH_INSTRUCTIONS * (uint64_t)count ? ROUNDS_OF_REST : 0;
    report_fault(mesh, count);
    return true;
}
