#include "hal.h"
#include "rpc.h"

enum { BREAK_ZEROS = 8 };

static uint32_t zeros; /* that came last */

bool rpc_break(void)
{
    while (hal_link_readable()) {
        zeros = hal_link_read() == 0 ? zeros + 1 : 0;
        if (zeros >= BREAK_ZEROS) {
            zeros = 0;
            return true;
        }
    }
    return false;
}
