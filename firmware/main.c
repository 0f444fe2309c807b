/* SPDX-License-Identifier: Apache-2.0 */
/* main() of the role that includes the root PE. The root PE answers the host and runs frames on request; other PEs run
 * frames for ever. */
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
