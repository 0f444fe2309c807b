/* SPDX-License-Identifier: Apache-2.0 */
/* Trace events of the PEs, in builds that trace. */
#include "bytes.h"
#include "hal.h"
#include "net.h"
#include "rpc_answer.h"

enum { EVENT_BYTES = sizeof(struct net_event), HEAD_BYTES = 8 };

static void copy(uint8_t *to, const void *from, uint32_t bytes)
{
    const uint8_t *each = from;
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = each[i];
    }
}

/* Read from a PE's trace, which lies at address `at` of the PE's memory. */
static bool read(uint32_t pe, uint32_t at, uint32_t offset, void *to, uint32_t bytes)
{
    if (pe != hal_pe()) {
        return bytes == 0 || hal_read_pe(pe, at + offset, to, bytes);
    }
    copy(to, (const uint8_t *)net_events + offset, bytes);
    return true;
}

/* Read `count` events from number `first` on, across the ring's end if necessary. */
static bool read_ring(uint32_t pe, uint32_t at, uint32_t capacity, uint32_t first, uint8_t *to, uint32_t count)
{
    const uint32_t place = first & (capacity - 1), before_end = capacity - place;
    const uint32_t head = count < before_end ? count : before_end;
    const uint32_t start = (uint32_t)sizeof(struct net_events);
    return read(pe, at, start + place * EVENT_BYTES, to, head * EVENT_BYTES) &&
           read(pe, at, start, to + head * EVENT_BYTES, (count - head) * EVENT_BYTES);
}

static uint32_t oldest(const struct net_events *events)
{
    return events->written > events->capacity ? events->written - events->capacity : 0;
}

/* Put events from number `first` on, as many as are still in the ring and fit. Puts none if the PE overwrites them
 * meanwhile. */
static bool put_events(uint32_t pe, uint32_t at, uint32_t first, struct rpc_answer *answer, uint8_t *payload)
{
    struct net_events events, later;
    if (!read(pe, at, 0, &events, sizeof events)) {
        return false;
    }
    const uint32_t from = first < oldest(&events) ? oldest(&events) : first < events.written ? first : events.written;
    const uint32_t room = (RPC_PAYLOAD_BYTES - HEAD_BYTES) / EVENT_BYTES, left = events.written - from;
    const uint32_t count = left < room ? left : room;
    uint8_t *const to = put32(put32(payload, events.written), from);
    if (!read_ring(pe, at, events.capacity, from, to, count) || !read(pe, at, 0, &later, sizeof later)) {
        return false;
    }
    *answer = rpc_done(HEAD_BYTES + (from < oldest(&later) ? 0 : count * EVENT_BYTES));
    return true;
}

struct rpc_answer rpc_read_events(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size;
    const uint32_t first = get32(arguments);
    struct net_control control;
    if (!rpc_read_control(pe, &control)) {
        return rpc_refuse(RPC_NOT_RUNNING, pe);
    }
    if (control.events == 0) {
        return rpc_refuse(RPC_NOT_TRACED, 0);
    }
    struct rpc_answer answer;
    return put_events(pe, control.events, first, &answer, payload) ? answer : rpc_refuse(RPC_NOT_RUNNING, pe);
}
