/* SPDX-License-Identifier: Apache-2.0 */
/* PE that answers for a network, on a board whose host link is at another PE. */
#ifndef SERVE_MAILBOX_H
#define SERVE_MAILBOX_H

/* Answer requests passed on by the PE with the link. Never returns. */
_Noreturn void serve_mailbox(void);

#endif
