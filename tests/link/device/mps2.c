/* The link's test net on QEMU's Cortex-M4, with the firmware's own HAL and startup. */
#include "hal.h"
#include "rpc.h"
#include "shifter.h"

/* Nothing answers at this address. */
#define NOWHERE ((volatile uint32_t *)0xD0000000U)

void take_time(uint64_t cycles)
{
    (void)cycles;
}

void stop(void)
{
    for (;;) {
        (void)*NOWHERE;
    }
}

int main(void);

int main(void)
{
    hal_init();
    name_layers();
    rpc_serve();
}
