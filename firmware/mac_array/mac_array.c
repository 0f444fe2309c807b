/* SPDX-License-Identifier: Apache-2.0 */
/* Driver of the MAC array: boards/pe-mesh.md, section 3.1. */
#include "mac_array.h"

#include "accelerator.h"
#include "board.h"

struct mac_array_registers {
    const struct mac_array_command *volatile doorbell;
    const volatile uint32_t status;
    const volatile uint32_t completed;
    const volatile uint32_t busy_cycles;
    volatile uint32_t error; /* any write clears it */
    const volatile uint32_t error_command;
};

enum { STATUS_BUSY = 1, STATUS_ERROR = 2 };

#define MAC_ARRAY ((struct mac_array_registers *)BOARD_MAC_ARRAY_BASE)

static int32_t take_error(void)
{
    const int32_t error = (int32_t)MAC_ARRAY->error;
    MAC_ARRAY->error = 0;
    return error;
}

void mac_array_submit(const struct mac_array_command *first)
{
    accelerator_before();
    MAC_ARRAY->doorbell = first;
}

int32_t mac_array_wait(void)
{
    uint32_t status;
    while ((status = MAC_ARRAY->status) != 0) {
        if ((status & STATUS_BUSY) == 0) {
            return take_error();
        }
        accelerator_wait(); /* the end of the chain sets the event register, also between the test and this call */
    }
    accelerator_after();
    return 0;
}

int32_t mac_array_run(const struct mac_array_command *first)
{
    mac_array_submit(first);
    return mac_array_wait();
}

int32_t mac_array_run_one(const struct mac_array_command *command)
{
    static _Alignas(16) struct mac_array_command alone;
    alone = *command;
    alone.next = 0;
    return mac_array_run(&alone);
}
