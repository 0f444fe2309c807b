/* SPDX-License-Identifier: Apache-2.0 */
#include "relay.h"

#include <stddef.h>

#include "bytes.h"
#include "frame.h"
#include "hal.h"
#include "mailbox.h"
#include "net.h"
#include "noc.h"
#include "rpc.h"
#include "rpc_answer.h"

static _Alignas(16) struct mailbox passed; /* copy of a mailbox, outgoing or incoming */

/* --- to the networks --- */

static void forget_session(uint32_t session)
{
    for (uint32_t i = 0; i < relay_count; i++) {
        if (relays[i].session == session) {
            relays[i].session = 0;
        }
    }
}

/* The network addressed by a request; 0: this PE's own. HELLO names the network by its answering PE, later requests by
 * the session. */
static struct relay *relay_of(const uint8_t *packet)
{
    const uint32_t kind = packet[1], pe = get16(packet + 4), session = get16(packet + 6);
    if (kind == RPC_HELLO) {
        forget_session(session);
    }
    for (uint32_t i = 0; i < relay_count; i++) {
        if (kind == RPC_HELLO ? relays[i].pe == pe : session != 0 && relays[i].session == session) {
            relays[i].session = session;
            return &relays[i];
        }
    }
    return 0;
}

/* True if the PE that answers for the network has started. */
static bool is_open(const struct relay *to)
{
    return hal_read_pe(to->pe, to->mailbox, &passed, MAILBOX_HEAD_BYTES) &&
           (passed.state == MAILBOX_EMPTY || passed.state == MAILBOX_REPLY);
}

/* Write to the mailbox of `to`, from offset `member` on, and call its PE. */
static bool call(struct relay *to, uint32_t member, const void *from, uint32_t bytes)
{
    const bool called = noc_call(to->pe, to->mailbox + member, from, bytes) == 0;
    to->calls += called ? 1 : 0;
    return called;
}

/* Pass a request on. Drops it while the network runs or has not started; the host asks again. */
static void pass_on(struct relay *to, const uint8_t *packet, uint32_t size)
{
    if (to->busy || !is_open(to)) {
        return;
    }
    passed = (struct mailbox){.state = MAILBOX_REQUEST, .calls = to->calls + 1, .bytes = size};
    for (uint32_t i = 0; i < size; i++) {
        passed.packet[i] = packet[i];
    }
    to->busy = call(to, 0, &passed, MAILBOX_HEAD_BYTES + size);
}

static void serve_request(uint8_t *packet, uint32_t size)
{
    struct relay *to = size < RPC_HEADER_BYTES ? 0 : relay_of(packet);
    if (to != 0) {
        pass_on(to, packet, size);
        return;
    }
    rpc_send(packet, rpc_answer(packet, size));
}

static void break_off(void)
{
    static const uint32_t broken_off = 1;
    for (uint32_t i = 0; i < relay_count; i++) {
        if (relays[i].busy) {
            (void)call(&relays[i], (uint32_t)offsetof(struct mailbox, broken_off), &broken_off, sizeof broken_off);
        }
    }
}

/* --- from the networks --- */

static void bring_reply(struct relay *from)
{
    if (!hal_read_pe(from->pe, from->mailbox, &passed, MAILBOX_HEAD_BYTES) || passed.state != MAILBOX_REPLY) {
        return;
    }
    from->busy = false;
    if (passed.bytes > 0 && hal_read_pe(from->pe, from->mailbox, &passed, MAILBOX_HEAD_BYTES + passed.bytes)) {
        frame_send(passed.packet, passed.bytes);
    }
}

static void bring_replies(void)
{
    for (uint32_t i = 0; i < relay_count; i++) {
        if (relays[i].busy) {
            bring_reply(&relays[i]);
        }
    }
}

static void serve_news(void)
{
    bool broken_off = false;
    struct frame *const frame = rpc_next_frame(&broken_off);
    if (broken_off) {
        break_off();
    }
    if (frame != 0) {
        serve_request(frame->buffer, frame->size);
        rpc_frame_done();
    }
}

_Noreturn void relay_serve(void)
{
    uint32_t heard = noc_calls();
    net_start();
    for (;;) {
        const bool ran = rpc_run_frame();
        const uint32_t calls = noc_calls();
        if (calls != heard) {
            heard = calls;
            bring_replies();
        }
        if (!ran && !rpc_link_has_news()) {
            hal_wait();
        }
        while (rpc_link_has_news()) {
            serve_news();
        }
    }
}
