/* SPDX-License-Identifier: Apache-2.0 */
/* What the host may ask of the loader over the link: docs/flash.md. */
#ifndef SERVER_H
#define SERVER_H

/* Answer the host for ever, or until it asks for a restart. */
_Noreturn void server_run(void);

#endif
