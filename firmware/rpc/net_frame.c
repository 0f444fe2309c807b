/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"

int32_t net_frame(void)
{
    const int32_t status = net_run();
    hal_count(&net_control->counters);
    net_control->frames++;
    net_control->status = status;
    return status;
}
