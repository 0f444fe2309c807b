/* SPDX-License-Identifier: Apache-2.0 */
/* The PE that answers for a network, where another PE has the host link. */
#ifndef SERVE_MAILBOX_H
#define SERVE_MAILBOX_H

/* Answer for ever what the PE with the link passes on. */
_Noreturn void serve_mailbox(void);

#endif
