/* SPDX-License-Identifier: Apache-2.0 */
/* main() of the role with the root PE, which answers the host and runs frames on request. */
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
