/* SPDX-License-Identifier: Apache-2.0 */
/* Between the PE that has the host link and the PE that answers for a network of its own: a request, and the reply to it
 * in its place. */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stdint.h>

#include "frame.h"

/* Before its PE has started, the mailbox is in none of these states. */
enum mailbox_state { MAILBOX_EMPTY = 0x4D41494C, MAILBOX_REQUEST, MAILBOX_REPLY };

/* It lies in the memory of the PE that answers. */
struct mailbox {
    uint32_t state;
    uint32_t broken_off; /* not 0: the host ends the run */
    uint32_t calls;      /* of its PE, the one with the request being the last: by then all of the request is there */
    uint32_t bytes;      /* of the packet; 0: no reply is due */
    uint8_t packet[FRAME_BUFFER_BYTES];
};

enum { MAILBOX_HEAD_BYTES = 16 };

#endif
