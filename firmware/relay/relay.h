/* SPDX-License-Identifier: Apache-2.0 */
/* Relay on the PE with the host link, for boards that several networks share. Passes the requests of a session with
 * another network to the mailbox of that network's first PE, and brings back the replies. Several networks may run at
 * once. */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stdint.h>

/* Another network on the board. */
struct relay {
    uint32_t pe;      /* PE that answers for the network */
    uint32_t mailbox; /* address of the mailbox on that PE */
    uint32_t session; /* of the host with the network; 0: none */
    uint32_t calls;   /* made to that PE */
    bool busy;        /* a request is in the mailbox */
};

/* Provided by the generated project. */
extern struct relay relays[];
extern const uint32_t relay_count;

/* Serve the host for ever. */
_Noreturn void relay_serve(void);

#endif
