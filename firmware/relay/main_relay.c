/* SPDX-License-Identifier: Apache-2.0 */
/* main() of the role that includes the root PE. The root PE answers the host about its own network and passes on
 * requests for other networks. */
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
