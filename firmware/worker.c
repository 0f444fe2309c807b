#include "worker.h"

#include "hal.h"
#include "net.h"

_Noreturn void work(void)
{
    while (net_run(0) == 0) {
    }
    for (;;) {
        hal_wait();
    }
}
