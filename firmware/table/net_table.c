/* SPDX-License-Identifier: Apache-2.0 */
/* net_run() for programs that are a table of steps (struct net_step in net.h).
 *
 * If memory is short, the end of the table is divided into pages in DRAM, each with the commands and descriptors of its
 * steps. The next page is fetched while the current page runs, and overwrites the previous page. The engine works in
 * order: it has then read the descriptors of the previous page.
 *
 * This file is the same for all programs. The generated net_table.h has the place of the table, the accelerator of its
 * chains, and the called functions. */
#include "net_table.h"

#include "net.h"
#include "noc.h"

enum { DONE = INT32_MIN }; /* end of the frame, beside the error codes of steps */
enum watch { NOT_ASKED, DEPLOYED, OBSERVED };

/* Position of a frame in the table. NET_AGAIN enters a repeated stretch; behind its end the frame continues at
 * `resume`. */
struct place {
    const struct net_step *step;
    const struct net_step *end; /* of the stretch; 0: not in a stretch */
    const struct net_step *resume;
    uint32_t layer;  /* the next layer to compute */
    uint32_t number; /* of steps done, for the trace */
    enum watch watch;
    bool fetches; /* a page fetch is under way */
};

static const net_command *command_of(const struct net_step *step)
{
    return (const net_command *)(uintptr_t)step->what;
}

static const struct net_argument *arguments_of(const struct net_step *step)
{
    return (const struct net_argument *)(uintptr_t)step->what;
}

/* Call all functions of a layer on the core. */
static int32_t call_all(const struct net_step *step)
{
    do {
        core_call(step->count, arguments_of(step));
        step++;
    } while (step->kind == NET_ALSO);
    return 0;
}

static int32_t drive_and_wait(const struct net_step *step)
{
    const int32_t status = driver_call(step->count, arguments_of(step));
    return status != 0 ? status : net_join();
}

/* Run one layer of a chain, command by command. */
static int32_t run_commands(const struct net_step *step)
{
    const net_command *command = command_of(step);
    for (uint32_t i = 0; i < step->count; i++, command = net_next_command(command)) {
        const int32_t status = net_run_command(command);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static int32_t run_whole(const struct net_step *step)
{
    switch (step->kind) {
    case NET_CALL:
        return call_all(step);
    case NET_DRIVE:
        return drive_and_wait(step);
    default:
        return run_commands(step);
    }
}

__attribute__((noinline)) int32_t net_observe(const struct net_step *step, uint32_t layer)
{
    net_begin_layer();
    const int32_t status = run_whole(step);
    if (status != 0) {
        return status;
    }
    return net_end_layer(layer) != 0 ? NET_STOPPED : 0; /* no tail call: a trace finds layers by their calls */
}

/* Patch the shared command of several pieces of a layer for the next piece: all NET_PATCH steps before the running
 * step. */
static inline void patch(struct place *at)
{
    const struct net_step *run = at->step + 1;
    while (run->kind == NET_PATCH) {
        run++;
    }
    volatile uint32_t *const command = (volatile uint32_t *)(uintptr_t)run->what;
    for (const struct net_step *step = at->step; step != run; step++) {
        command[step->flag] = step->what;
    }
    at->number += (uint32_t)(run - at->step) - 1;
    at->step = run - 1;
}

static uint8_t own_flag(const struct net_step *signal)
{
    return (signal->what & NET_SIGNAL_SENT) != 0 ? 0 : NOC_NO_FLAG;
}

static int32_t send_signal(const struct net_step *step)
{
    const uint32_t chip = (step->what & NET_SIGNAL_THIS_CHIP) != 0 ? NOC_THIS_CHIP : 0;
    return noc_signal(chip + step->count, step->flag, own_flag(step), (uint16_t)step->what);
}

static int32_t send_signals(const struct net_step *step)
{
    const struct noc_destination *const to = (const struct noc_destination *)(uintptr_t)(step + 1)->what;
    return noc_signal_all(to, step->count, step->flag, own_flag(step), (uint16_t)step->what);
}

static inline int32_t fetch_page(struct place *at)
{
    at->fetches = true;
    return noc_fetch(at->step->what, (void *)(uintptr_t)(at->step + 1)->what, at->step->count);
}

/* Continue with another page, at its first step. */
static inline int32_t turn(struct place *at)
{
    const int32_t status = at->step->count > 0 ? noc_fetched() : 0;
    at->fetches = false;
    at->step = (const struct net_step *)(uintptr_t)at->step->what - 1;
    return status;
}

static inline void restore(const struct net_step *step)
{
    net_restore((const struct net_state *)(uintptr_t)step->what, step->count);
}

static inline void enter_stretch(struct place *at)
{
    const struct net_step *const first = NET_FIRST_STEP + at->step->what;
    at->end = first + at->step->count;
    at->resume = at->step + 1;
    at->step = first - 1;
}

static inline int32_t do_step(struct place *at)
{
    const struct net_step *const step = at->step;
    switch (step->kind) {
    case NET_END:
        return DONE;
    case NET_WAIT:
        return noc_wait(step->flag, step->count);
    case NET_SEND:
        return noc_send((const struct noc_descriptor *)(uintptr_t)step->what);
    case NET_SIGNAL:
        return send_signal(step);
    case NET_SIGNALS:
        return send_signals(step);
    case NET_FETCH:
        return NET_HAS_PAGES ? fetch_page(at) : 0;
    case NET_PAGE:
        return NET_HAS_PAGES ? turn(at) : 0;
    case NET_RUN:
        return net_run_chain(command_of(step));
    case NET_SUBMIT:
        return net_submit_chain(command_of(step));
    case NET_JOIN:
        return net_join();
    case NET_DRIVE:
        return driver_call(step->count, arguments_of(step));
    case NET_CALL:
    case NET_ALSO:
        core_call(step->count, arguments_of(step));
        break;
    case NET_AGAIN:
        enter_stretch(at);
        break;
    case NET_PATCH:
        if (NET_HAS_CHAINS) {
            patch(at);
        }
        break;
    case NET_RESTORE:
        if (NET_HAS_STATES) {
            restore(step);
        }
        break;
    default: /* NET_LINKED, NET_TO: done with the step before */
        break;
    }
    return 0;
}

/* Run the next layer of an observed frame. */
static inline int32_t watch_step(struct place *at)
{
    if (at->step->kind == NET_ALSO) { /* done with the step before */
        return 0;
    }
    const int32_t status = net_observe(at->step, at->layer), onward = (int8_t)at->step->flag;
    at->layer += (uint32_t)onward;
    return status;
}

/* Read `observed` at the frame's first step that computes. The word arrives before the frame's data, but possibly after
 * its first steps. */
static inline bool is_observed(struct place *at)
{
    if (at->watch == NOT_ASKED) {
        at->watch = net_observed() ? OBSERVED : DEPLOYED;
    }
    return at->watch == OBSERVED;
}

static inline bool computes(const struct net_step *step)
{
    return step->kind >= NET_RUN;
}

static inline void note(struct place *at)
{
    if (at->step->kind != NET_AGAIN && at->step->kind != NET_END) {
        net_event(at->number++);
    }
}

static inline void advance(struct place *at)
{
    at->step++;
    if (at->step == at->end) {
        at->step = at->resume;
        at->end = 0;
    }
}

/* If the host breaks the frame off, wait for a page under way: its flag would count for the next copy. */
static int32_t end_early(bool fetches, int32_t status)
{
    if (NET_HAS_PAGES && fetches && status == NOC_GIVEN_UP) {
        (void)noc_fetched();
    }
    return status;
}

int32_t net_run(void)
{
    struct place at = { .step = NET_FIRST_STEP, .watch = NOT_ASKED };
    int32_t status = 0;
    while (status == 0) {
        if (NET_TRACES) {
            note(&at);
        }
        const bool observed = at.watch != DEPLOYED && computes(at.step) && is_observed(&at);
        status = observed ? watch_step(&at) : do_step(&at);
        advance(&at);
    }
    if (status != DONE) {
        return end_early(at.fetches, status);
    }
    if (NET_TRACES) {
        net_end_frame();
    }
    return 0;
}
