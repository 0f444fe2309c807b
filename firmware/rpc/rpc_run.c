/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about runs. RUN is answered at the end of the run. A run begun by START can be read, stopped and resumed. */
#include "bytes.h"
#include "hal.h"
#include "net.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { RUN_BYTES = 32, STATE_BYTES = 48 };
enum run_state { OVER, UNDER_WAY, STOPPED };

static struct {
    bool known;   /* belongs to this session */
    bool started; /* by START, not by RUN */
    uint32_t number;
    enum run_state state;
    uint32_t ran;
    uint32_t frames; /* requested */
    int32_t status;
    struct hal_counters spent;
} last_run;

static bool records_complete; /* of the last observed run */
static bool out_of_step;      /* a run over several PEs has failed */

void rpc_forget_run(void)
{
    last_run.known = false;
    last_run.state = OVER;
    records_complete = false;
    rpc_outputs_are(false);
}

static bool is_last(bool started, uint32_t number)
{
    return last_run.known && last_run.started == started && last_run.number == number;
}

static void add_spent(const struct hal_counters *before, const struct hal_counters *after)
{
    last_run.spent.cycles += after->cycles - before->cycles;
    last_run.spent.instructions += after->instructions - before->instructions;
    last_run.spent.asleep += after->asleep - before->asleep;
}

/* Run frames in a row. The counters include the time between frames. */
static void run(uint32_t frames)
{
    struct hal_counters before;
    uint32_t ran = 0;
    hal_count(&before);
    while (ran < frames && last_run.status == 0) {
        last_run.status = net_frame();
        ran++;
    }
    last_run.ran = ran;
    add_spent(&before, &net_control->counters);
}

static void end_run(void)
{
    last_run.state = OVER;
    out_of_step = last_run.status != 0 && net_description.pe_count * net_description.chip_count > 1;
    rpc_outputs_are(last_run.status == 0);
}

/* Prepare a run and make it the last run, unless it is refused. */
static struct rpc_answer begin_run(bool started, uint32_t number, uint32_t frames, bool observe)
{
    if (last_run.state == UNDER_WAY) {
        return rpc_refuse(RPC_RUNNING, last_run.number);
    }
    if (out_of_step) {
        return rpc_refuse(RPC_OUT_OF_STEP, (uint32_t)last_run.status);
    }
    const struct rpc_answer told = rpc_observe(observe);
    if (told.status == RPC_OK) {
        last_run.known = true;
        last_run.started = started;
        last_run.number = number;
        last_run.state = UNDER_WAY;
        last_run.ran = 0;
        last_run.frames = frames;
        last_run.status = 0;
        last_run.spent = (struct hal_counters){0};
        rpc_outputs_are(false);
    }
    return told;
}

/* Refused during a run: chance would decide which frame begins anew. */
struct rpc_answer rpc_reset_states(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)arguments, (void)size, (void)payload;
    return last_run.state == UNDER_WAY ? rpc_refuse(RPC_RUNNING, last_run.number) : rpc_forget_states();
}

static uint8_t *put_spent(uint8_t *at)
{
    return put64(put64(put64(at, last_run.spent.cycles), last_run.spent.instructions), last_run.spent.asleep);
}

struct rpc_answer rpc_run(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe;
    uint32_t number = get32(arguments), observe = get16(arguments + 4), frames = get16(arguments + 6);
    if (frames == 0) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (!is_last(false, number)) { /* else the host has missed the reply and asks again */
        const struct rpc_answer begun = begin_run(false, number, frames, observe != 0);
        if (begun.status != RPC_OK) {
            return begun;
        }
        run(frames);
        end_run();
        records_complete = last_run.status == 0 && (observe != 0 || records_complete);
    }
    put_spent(put32(put32(payload, number), (uint32_t)last_run.status));
    return rpc_done(RUN_BYTES);
}

/* --- runs that answer requests between frames --- */

bool rpc_run_frame(void)
{
    struct hal_counters before;
    if (last_run.state != UNDER_WAY) {
        return false;
    }
    hal_count(&before);
    last_run.status = net_frame();
    last_run.ran++;
    add_spent(&before, &net_control->counters);
    if (last_run.status != 0 || last_run.ran == last_run.frames) {
        end_run();
    }
    return true;
}

bool rpc_run_is_under_way(void)
{
    return last_run.state == UNDER_WAY && last_run.started;
}

static struct rpc_answer tell_state(uint8_t *payload)
{
    uint8_t *at = put32(put32(put32(payload, last_run.number), last_run.state), (uint32_t)last_run.status);
    put_spent(put32(put32(put32(at, last_run.ran), last_run.frames), 0));
    return rpc_done(STATE_BYTES);
}

/* Begin a run at frame 0, or resume the stopped run at the frame where it was stopped. Any other frame number is a
 * repeated request, answered with the run's state. */
struct rpc_answer rpc_start(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe;
    const uint32_t number = get32(arguments), ran = get32(arguments + 4), frames = get32(arguments + 8);
    if (is_last(true, number)) {
        const bool resumes = last_run.state == STOPPED && last_run.ran == ran;
        last_run.state = resumes ? UNDER_WAY : last_run.state;
        return tell_state(payload);
    }
    if (frames == 0) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (ran != 0) {
        return rpc_refuse(RPC_NO_SUCH_RUN, last_run.number);
    }
    const struct rpc_answer begun = begin_run(true, number, frames, false);
    return begun.status == RPC_OK ? tell_state(payload) : begun;
}

struct rpc_answer rpc_stop(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)size;
    if (!is_last(true, get32(arguments))) {
        return rpc_refuse(RPC_NO_SUCH_RUN, last_run.number);
    }
    last_run.state = last_run.state == UNDER_WAY ? STOPPED : last_run.state;
    return tell_state(payload);
}

struct rpc_answer rpc_read_run(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)size;
    return is_last(true, get32(arguments)) ? tell_state(payload) : rpc_refuse(RPC_NO_SUCH_RUN, last_run.number);
}

struct rpc_answer rpc_read_layers(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size;
    uint32_t first = get16(arguments);
    if (!records_complete) {
        return rpc_refuse(RPC_NOT_OBSERVED, 0);
    }
    return rpc_copy_records(pe, first, payload, RPC_PAYLOAD_BYTES);
}
