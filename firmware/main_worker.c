/* SPDX-License-Identifier: Apache-2.0 */
/* main() of a role without the root PE: no host link, hence no RPC server in the image. */
#include "hal.h"
#include "worker.h"

int main(void);

int main(void)
{
    hal_init();
    work();
}
