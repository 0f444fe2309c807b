/* SPDX-License-Identifier: Apache-2.0 */
/* A PE of the role that has the root PE in it. The root PE answers the host about its own network, and passes on what the
 * host asks of others. */
#include "hal.h"
#include "relay.h"
#include "worker.h"

int main(void);

int main(void)
{
    hal_init();
    if (hal_link_present()) {
        relay_serve();
    }
    work();
}
