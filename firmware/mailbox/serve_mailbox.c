/* SPDX-License-Identifier: Apache-2.0 */
#include "serve_mailbox.h"

#include <stdbool.h>

#include "board.h"
#include "core_events.h"
#include "hal.h"
#include "mailbox.h"
#include "net.h"
#include "noc.h"
#include "rpc.h"
#include "rpc_answer.h"

/* Not static: npukit reads the address from the image, for the PE with the link. */
extern volatile struct mailbox network_mailbox;
volatile _Alignas(16) struct mailbox network_mailbox;

static uint8_t packet[FRAME_BUFFER_BYTES];

bool rpc_break(void)
{
    const bool broken_off = network_mailbox.broken_off != 0;
    network_mailbox.broken_off = 0;
    return broken_off;
}

/* `state` may arrive before the rest of the request. The request is complete once noc_calls() has reached `calls`. */
static bool has_request(void)
{
    return network_mailbox.state == MAILBOX_REQUEST && (int32_t)(noc_calls() - network_mailbox.calls) >= 0;
}

static void answer(void)
{
    const uint32_t size = network_mailbox.bytes;
    for (uint32_t i = 0; i < size; i++) {
        packet[i] = network_mailbox.packet[i];
    }
    const uint32_t reply = rpc_answer(packet, size);
    for (uint32_t i = 0; i < reply; i++) {
        network_mailbox.packet[i] = packet[i];
    }
    network_mailbox.bytes = reply;
    network_mailbox.state = MAILBOX_REPLY;
    core_order_memory();
    (void)noc_call(BOARD_ROOT_PE, 0, 0, 0);
}

_Noreturn void serve_mailbox(void)
{
    net_start();
    network_mailbox.state = MAILBOX_EMPTY;
    for (;;) {
        const bool ran = rpc_run_frame();
        if (has_request()) {
            answer();
        }
        if (!ran && !rpc_run_is_under_way()) {
            hal_wait();
        }
    }
}
