/* SPDX-License-Identifier: Apache-2.0 */
/* What arrives over the link: while nothing runs, between the frames of a run that answers, and in the midst of a frame. */
#include "frame.h"
#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { BREAK_ZEROS = 8 };

static struct frame frame;
static bool heard;     /* a whole request waits in `frame` */
static uint32_t zeros; /* that came last */

bool rpc_break_ends(uint8_t byte)
{
    zeros = byte == 0 ? zeros + 1 : 0;
    if (zeros < BREAK_ZEROS) {
        return false;
    }
    zeros = 0;
    return true;
}

/* A run that has not been answered yet has its request in the frame's buffer: what the host says then is lost. */
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
