/* The frame of a long program: `net_run` goes through the table of its steps (struct net_step in net.h).
 *
 * Where memory is short the end of the table comes from DRAM page by page, each with the commands and descriptors of its
 * steps. The next page is fetched while one is done, and lies where the one before it did: the engine has read the
 * descriptors of that by then, as it does what it is asked for in order.
 *
 * The same for all programs. What one has of its own, its generated net_table.h says: where the table lies, which
 * accelerator its chains are for, which kernels the core has. */
#include "net_table.h"

#include "net.h"
#include "noc.h"

/* Where in the table a frame is. A stretch that comes again is entered by a step of its own, and left after `again`
 * more steps for the one at `resume`. */
struct place {
    const struct net_step *step;
    const struct net_step *resume;
    uint32_t again;
    uint32_t layer;  /* the next one to be computed */
    uint32_t number; /* of steps done, as a trace counts them */
    bool fetches;    /* a page is on its way */
};

static const net_command *command_of(const struct net_step *step)
{
    return (const net_command *)(uintptr_t)step->what;
}

/* Runs one layer of a chain, command by command. */
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

static int32_t run_kernel(const struct net_step *step)
{
    const int32_t status = core_kernel(step->count);
    return status != 0 ? status : net_join();
}

/* Runs a layer, or a piece of one, to its end and records what it leaves behind. */
static int32_t observe(const struct net_step *step, uint32_t layer)
{
    net_begin_layer();
    const int32_t status = step->kind == NET_CALL ? run_kernel(step) : run_commands(step);
    if (status == 0) {
        net_end_layer(layer);
    }
    return status;
}

/* Fits the command that several pieces of a layer share to the next piece. Returns the step that runs it. */
static const struct net_step *patch(const struct net_step *step)
{
    const struct net_step *run = step;
    while (run->kind == NET_PATCH) {
        run++;
    }
    volatile uint32_t *const command = (volatile uint32_t *)(uintptr_t)run->what;
    for (; step != run; step++) {
        command[step->flag] = step->what;
    }
    return run;
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

static int32_t fetch_page(const struct net_step *step)
{
    return noc_fetch(step->what, (void *)(uintptr_t)(step + 1)->what, step->count);
}

static int32_t do_step(const struct net_step *step)
{
    switch (step->kind) {
    case NET_WAIT:
        return noc_wait(step->flag, step->count);
    case NET_SEND:
        return noc_send((const struct noc_descriptor *)(uintptr_t)step->what);
    case NET_SIGNAL:
        return send_signal(step);
    case NET_SIGNALS:
        return send_signals(step);
    case NET_RUN:
        return net_run_chain(command_of(step));
    case NET_SUBMIT:
        return net_submit_chain(command_of(step));
    case NET_JOIN:
        return net_join();
    case NET_CALL:
        return core_kernel(step->count);
    case NET_FETCH:
        return NET_HAS_PAGES ? fetch_page(step) : 0;
    case NET_PAGE:
        return NET_HAS_PAGES && step->count > 0 ? noc_fetched() : 0;
    case NET_RESTORE:
        if (NET_HAS_STATES) {
            net_restore((const struct net_state *)(uintptr_t)step->what, step->count);
        }
        return 0;
    default: /* NET_LINKED, NET_TO: done with the step before */
        return 0;
    }
}

static bool computes(const struct net_step *step)
{
    return step->kind >= NET_RUN && step->kind != NET_JOIN;
}

/* Enters a stretch that comes again, and does what precedes a command: both are part of the step that follows. */
static void enter(struct place *at)
{
    if (at->step->kind == NET_AGAIN) {
        at->again = at->step->count;
        at->resume = at->step + 1;
        at->step = NET_FIRST_STEP + at->step->what;
    }
    if (NET_TRACES) {
        net_event(at->number++);
    }
    if (NET_HAS_CHAINS && at->step->kind == NET_PATCH) {
        const struct net_step *const run = patch(at->step);
        const uint32_t passed = (uint32_t)(run - at->step);
        at->again -= at->again > 0 ? passed : 0; /* a stretch ends behind a command, never before it */
        at->number += passed;
        at->step = run;
    }
}

static void advance(struct place *at)
{
    if (computes(at->step)) {
        const int32_t onward = (int8_t)at->step->flag;
        at->layer += (uint32_t)onward;
    }
    const bool turns = NET_HAS_PAGES && at->step->kind == NET_PAGE;
    at->fetches = NET_HAS_PAGES && (at->step->kind == NET_FETCH || (at->fetches && !turns));
    at->step = turns ? (const struct net_step *)(uintptr_t)at->step->what : at->step + 1;
    if (at->again > 0) {
        at->again--;
        at->step = at->again == 0 ? at->resume : at->step;
    }
}

/* A frame that the host breaks off leaves no page on its way, which would count for the next copy. */
static int32_t end_early(const struct place *at, int32_t status)
{
    if (NET_HAS_PAGES && at->fetches && status == NOC_GIVEN_UP) {
        (void)noc_fetched();
    }
    return status;
}

/* Whether a frame is observed is asked once it has begun: the word comes before what the frame works on. */
int32_t net_run(void)
{
    struct place at = { .step = NET_FIRST_STEP, .resume = NET_FIRST_STEP };
    bool observed = false;
    bool asked = false;
    while (at.step->kind != NET_END) {
        enter(&at);
        const bool is_layer = computes(at.step);
        if (is_layer && !asked) {
            observed = net_observed() != 0;
            asked = true;
        }
        const int32_t status = observed && is_layer ? observe(at.step, at.layer) : do_step(at.step);
        if (status != 0) {
            return end_early(&at, status);
        }
        advance(&at);
    }
    if (NET_TRACES) {
        net_end_frame();
    }
    return 0;
}
