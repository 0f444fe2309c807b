/* SPDX-License-Identifier: Apache-2.0 */
/* The PE with the host link, where networks side by side share the board: requests of a session with another network go to
 * the mailbox of that network's first PE, replies come back. Several networks may run at once. */
#ifndef RELAY_H
#define RELAY_H

#include <stdbool.h>
#include <stdint.h>

/* Another network. */
struct relay {
    uint32_t pe;      /* that answers for it */
    uint32_t mailbox; /* its address there */
    uint32_t session; /* that the host has with it; 0: none */
    uint32_t calls;   /* of that PE so far */
    bool busy;        /* a request is there */
};

/* The generated project provides these two. */
extern struct relay relays[];
extern const uint32_t relay_count;

/* Serve the host for ever. */
_Noreturn void relay_serve(void);

#endif
