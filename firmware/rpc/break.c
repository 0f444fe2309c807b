/* SPDX-License-Identifier: Apache-2.0 */
#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

/* Not inline: waits poll often and rarely find a byte. */
__attribute__((noinline)) static bool hear(void)
{
    do {
        const uint8_t byte = hal_link_read();
        rpc_hear(byte);
        if (rpc_break_ends(byte)) {
            return true;
        }
    } while (hal_link_readable());
    return false;
}

bool rpc_break(void)
{
    return hal_link_readable() && hear();
}
