/* SPDX-License-Identifier: Apache-2.0 */
/* Loader: runs on the root PE after a restart, and starts the image in the flash or listens to the host. */
#include <stdbool.h>

#include "core.h"
#include "flash.h"
#include "hal.h"
#include "mesh_load.h"
#include "rpc.h"
#include "server.h"
#include "slots.h"
#include "update.h"

int main(void);

int main(void)
{
    struct image image;
    hal_init();
    update_settle();
    if (flash_cause() != STARTED_BY_HOST && update_choose(&image) != NO_SLOT) {
        mesh_load(image.payload);
    }
    server_run();
}

void fault_handler(void)
{
    flash_restart();
}

/* The host cannot break off any wait of the loader. */
bool rpc_break(void)
{
    return false;
}
