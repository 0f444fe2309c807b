/* The root PE answers the host, which says when a frame runs. Every other PE runs frames for ever: the flags that its
 * messages wait for keep it in step. */
#include "hal.h"
#include "net.h"
#include "rpc.h"

int main(void);

static void run_frames(void)
{
    while (net_run(0) == 0) {
    }
}

int main(void)
{
    hal_init();
    if (hal_link_present()) {
        rpc_serve();
    }
    run_frames();
    for (;;) {
        hal_wait();
    }
}
