/* SPDX-License-Identifier: Apache-2.0 */
/* main() of the role with the network's first PE, on a board whose host link is at a PE of another network. */
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
