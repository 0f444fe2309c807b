/* SPDX-License-Identifier: Apache-2.0 */
/* The root's access to the other PEs: reads their control blocks and records, sets whether they observe. */
#include <stddef.h>

#include "bytes.h"
#include "hal.h"
#include "net.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { PE_BYTES = 56 };

static bool observing;
static bool all_answered; /* every PE has the setting `observing` */

static uint32_t pe_count(void)
{
    return (uint32_t)net_description.pe_count * net_description.chip_count;
}

/* PEs of the network are numbered chip by chip. */
static struct net_pe pe_at(uint32_t index)
{
    const struct net_pe *like = &net_description.pes[index % net_description.pe_count];
    return (struct net_pe){like->pe + net_description.chips[index / net_description.pe_count].pe, like->control};
}

static bool is_root(const struct net_pe *pe)
{
    return pe->pe == net_description.pes[0].pe;
}

static bool read_control(const struct net_pe *pe, struct net_control *control)
{
    if (is_root(pe)) {
        *control = *net_control;
        return true;
    }
    return hal_read_pe(pe->pe, pe->control, control, sizeof *control) && control->sign == net_sign;
}

/* Find a PE of the network by its number on the board. False if the PE has no part in the network. */
static bool find(uint32_t number, struct net_pe *pe)
{
    for (uint32_t i = 0; i < pe_count(); i++) {
        *pe = pe_at(i);
        if (pe->pe == number) {
            return true;
        }
    }
    return false;
}

bool rpc_all_run(void)
{
    struct net_control control;
    bool all = true;
    for (uint32_t i = 0; i < pe_count() && all; i++) {
        const struct net_pe pe = pe_at(i);
        all = read_control(&pe, &control);
    }
    return all;
}

/* --- settings for the next frame --- */

static bool write_word(const struct net_pe *pe, uint32_t member, uint32_t word)
{
    return hal_write_pe(pe->pe, pe->control + member, &word, sizeof word);
}

/* Reading the word back ensures that it has arrived before any message of the next frame. */
static bool set_observed(const struct net_pe *pe, uint32_t observed)
{
    struct net_control control;
    if (is_root(pe)) {
        net_control->observed = observed;
        return true;
    }
    return write_word(pe, (uint32_t)offsetof(struct net_control, observed), observed) && read_control(pe, &control) &&
           control.observed == observed;
}

/* Set or clear `observed`. In an observed run, a value of net_stop() stays. */
static bool tell(const struct net_pe *pe, bool observe)
{
    struct net_control control;
    return read_control(pe, &control) && ((observe && control.observed > 1) || set_observed(pe, observe));
}

/* Clear `kept` and read it back, as set_observed() does. */
static bool forget(const struct net_pe *pe)
{
    struct net_control control;
    if (is_root(pe)) {
        net_control->kept = 0;
        return true;
    }
    return read_control(pe, &control) && write_word(pe, (uint32_t)offsetof(struct net_control, kept), 0) &&
           read_control(pe, &control) && control.kept == 0;
}

struct rpc_answer rpc_forget_states(void)
{
    for (uint32_t i = 0; i < pe_count(); i++) {
        const struct net_pe pe = pe_at(i);
        if (!forget(&pe)) {
            return rpc_refuse(RPC_NOT_RUNNING, pe.pe);
        }
    }
    return rpc_done(0);
}

struct rpc_answer rpc_observe(bool observe)
{
    if (all_answered && observing == observe) {
        return rpc_done(0);
    }
    all_answered = false;
    for (uint32_t i = 0; i < pe_count(); i++) {
        const struct net_pe pe = pe_at(i);
        if (!tell(&pe, observe)) {
            return rpc_refuse(RPC_NOT_RUNNING, pe.pe);
        }
    }
    all_answered = true;
    observing = observe;
    return rpc_done(0);
}

/* Make the next observed frame end behind a layer of a PE. A run without observation cancels this. */
struct rpc_answer rpc_stop_behind(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)payload;
    const uint32_t layer = get16(arguments), pieces = get16(arguments + 2);
    struct net_pe place;
    struct net_control control;
    if (!find(pe, &place)) {
        return rpc_refuse(RPC_OTHER_PE, hal_pe());
    }
    if (!read_control(&place, &control)) {
        return rpc_refuse(RPC_NOT_RUNNING, pe);
    }
    if (layer >= control.layer_count || layer > NET_MOST_LAYERS) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, control.layer_count);
    }
    if (pieces == 0) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    all_answered = false;
    return set_observed(&place, net_stop(layer, pieces)) ? rpc_done(0) : rpc_refuse(RPC_NOT_RUNNING, pe);
}

/* --- records --- */

static bool read_records(const struct net_pe *pe, uint32_t first, uint8_t *to, uint32_t bytes)
{
    const uint8_t *own = (const uint8_t *)&net_records[first];
    if (!is_root(pe)) {
        const uint32_t behind = (uint32_t)sizeof(struct net_control) + first * (uint32_t)sizeof(struct net_record);
        return hal_read_pe(pe->pe, pe->control + behind, to, bytes);
    }
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = own[i];
    }
    return true;
}

bool rpc_read_control(uint32_t pe, struct net_control *control)
{
    struct net_pe place;
    return find(pe, &place) && read_control(&place, control);
}

struct rpc_answer rpc_copy_records(uint32_t pe, uint32_t first, uint8_t *to, uint32_t room)
{
    struct net_pe place;
    struct net_control control;
    if (!find(pe, &place)) {
        return rpc_refuse(RPC_OTHER_PE, hal_pe());
    }
    if (!read_control(&place, &control)) {
        return rpc_refuse(RPC_NOT_RUNNING, pe);
    }
    if (first >= control.layer_count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, control.layer_count);
    }
    const uint32_t size = (uint32_t)sizeof(struct net_record), left = control.layer_count - first, most = room / size;
    const uint32_t bytes = (left < most ? left : most) * size;
    return read_records(&place, first, to, bytes) ? rpc_done(bytes) : rpc_refuse(RPC_NOT_RUNNING, pe);
}

/* --- status of PEs --- */

static uint8_t *put_pe(uint8_t *at, const struct net_pe *pe)
{
    struct net_control control;
    const bool running = read_control(pe, &control);
    if (!running) {
        control = (struct net_control){0};
    }
    at = put32(put32(put32(put32(at, pe->pe), running), control.layer_count), control.frames);
    at = put64(put64(put64(at, control.counters.cycles), control.counters.instructions), control.counters.asleep);
    at = put32(put32(at, (uint32_t)control.status), control.fault_status);
    return put32(put32(at, control.fault_pc), control.fault_address);
}

/* Put the status of PEs, from number `first` of the network on, as many as fit. */
struct rpc_answer rpc_read_pes(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)size;
    uint32_t first = get16(arguments), count = pe_count();
    if (first >= count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, count);
    }
    uint8_t *at = payload;
    for (uint32_t i = first; i < count && at - payload <= RPC_PAYLOAD_BYTES - PE_BYTES; i++) {
        const struct net_pe each = pe_at(i);
        at = put_pe(at, &each);
    }
    return rpc_done((uint32_t)(at - payload));
}
