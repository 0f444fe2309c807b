/* SPDX-License-Identifier: Apache-2.0 */
/* Mailbox between the PE with the host link and the PE that answers for another network. Holds a request, then the
 * reply in its place. */
#ifndef MAILBOX_H
#define MAILBOX_H

#include <stdint.h>

#include "frame.h"

/* States of a mailbox. Before the start of the PE `state` has none of these values. */
enum mailbox_state { MAILBOX_EMPTY = 0x4D41494C, MAILBOX_REQUEST, MAILBOX_REPLY };

/* Layout of a mailbox, in the memory of the PE that answers. */
struct mailbox {
    uint32_t state;
    uint32_t broken_off; /* not 0: the host breaks the run off */
    uint32_t calls;      /* made to this PE up to this request; once all have arrived, the request is complete */
    uint32_t bytes;      /* of the packet; 0 in a reply: send none */
    uint8_t packet[FRAME_BUFFER_BYTES];
};

enum { MAILBOX_HEAD_BYTES = 16 };

#endif
