#include "hal.h"
#include "rpc.h"

enum { BREAK_ZEROS = 8 };

static uint32_t zeros; /* that came last */

bool rpc_break_ends(uint8_t byte)
{
    zeros = byte == 0 ? zeros + 1 : 0;
    if (zeros < BREAK_ZEROS) {
        return false;
    }
    zeros = 0;
    return true;
}

bool rpc_break(void)
{
    while (hal_link_readable()) {
        if (rpc_break_ends(hal_link_read())) {
            return true;
        }
    }
    return false;
}
