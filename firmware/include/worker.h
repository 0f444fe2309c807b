/* SPDX-License-Identifier: Apache-2.0 */
/* What a PE without a host link does. */
#ifndef WORKER_H
#define WORKER_H

/* Run frames for ever: the flags that the network's messages wait for keep the PE in step. After an error, sleep. */
_Noreturn void work(void);

#endif
