/* SPDX-License-Identifier: Apache-2.0 */
#include "worker.h"

#include "hal.h"
#include "net.h"

_Noreturn void work(void)
{
    net_start();
    while (net_frame() == 0) {
    }
    for (;;) {
        hal_wait(); /* the control block holds the error code */
    }
}
