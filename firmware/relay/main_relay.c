/* SPDX-License-Identifier: Apache-2.0 */
/* main() of the role with the root PE, which answers the host about its own network and passes on requests for other
 * networks. */
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
