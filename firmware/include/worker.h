/* SPDX-License-Identifier: Apache-2.0 */
/* Main loop of a PE without a host link. */
#ifndef WORKER_H
#define WORKER_H

/* Run frames for ever. Waits for the network's messages keep the PE in step with the others. After an error, sleep. */
_Noreturn void work(void);

#endif
