/* SPDX-License-Identifier: Apache-2.0 */
/* A PE of the role that has the root PE in it. The root PE answers the host, who says when a frame runs. */
#include "hal.h"
#include "rpc.h"
#include "worker.h"

int main(void);

int main(void)
{
    hal_init();
    if (hal_link_present()) {
        rpc_serve();
    }
    work();
}
