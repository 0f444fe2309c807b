/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes from the link: while nothing runs, between the frames of a run begun by START, and during a frame. */
#include "frame.h"
#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { BREAK_ZEROS = 8 };

static struct frame frame;
static bool heard;     /* `frame` holds a complete request */
static uint32_t zeros; /* consecutive zeros received last */

bool rpc_break_ends(uint8_t byte)
{
    zeros = byte == 0 ? zeros + 1 : 0;
    if (zeros < BREAK_ZEROS) {
        return false;
    }
    zeros = 0;
    return true;
}

/* During a run begun by RUN, `frame` still holds the request: other bytes from the host are dropped. */
void rpc_hear(uint8_t byte)
{
    if (rpc_run_is_under_way() && !heard) {
        heard = frame_receive(&frame, byte);
    }
}

bool rpc_link_has_news(void)
{
    return heard || hal_link_readable();
}

struct frame *rpc_next_frame(bool *broken_off)
{
    if (!heard && hal_link_readable()) {
        const uint8_t byte = hal_link_read();
        heard = frame_receive(&frame, byte);
        if (broken_off != 0) {
            *broken_off = rpc_break_ends(byte);
        }
    }
    return heard ? &frame : 0;
}

void rpc_frame_done(void)
{
    heard = false;
    frame_clear(&frame);
}
