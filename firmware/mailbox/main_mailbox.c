/* SPDX-License-Identifier: Apache-2.0 */
/* A PE of the role that has the network's first PE in it, on a board whose host link another network's PE has. */
#include "board.h"
#include "hal.h"
#include "serve_mailbox.h"
#include "worker.h"

int main(void);

int main(void)
{
    hal_init();
    if (hal_pe() == BOARD_NETWORK_PE) {
        serve_mailbox();
    }
    work();
}
