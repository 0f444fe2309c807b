/* SPDX-License-Identifier: Apache-2.0 */
/* Server of the loader: answers the host's requests over the link (docs/protocol.md). */
#ifndef SERVER_H
#define SERVER_H

/* Answer the host until a request restarts the board. */
_Noreturn void server_run(void);

#endif
