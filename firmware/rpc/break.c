#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

bool rpc_break(void)
{
    while (hal_link_readable()) {
        const uint8_t byte = hal_link_read();
        rpc_hear(byte);
        if (rpc_break_ends(byte)) {
            return true;
        }
    }
    return false;
}
