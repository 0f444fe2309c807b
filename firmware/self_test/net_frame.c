/* SPDX-License-Identifier: Apache-2.0 */
#include "net.h"
#include "self_test.h"

/* The frame's counters exclude the test, except for the complete test before the first frame. */
int32_t net_frame(void)
{
    int32_t status = net_control->frames == 0 ? self_test_all() : 0;
    if (status == 0) {
        status = net_run();
    }
    hal_count(&net_control->counters);
    net_control->frames++;
    if (status == 0) {
        status = self_test_some();
    }
    net_control->status = status;
    return status;
}
