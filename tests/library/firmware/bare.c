/* No operating system: the drivers' own waiting, or with hooks the customer's. */
#include <stdint.h>

#include "inference.h"

#ifdef ACCELERATOR_HOOKS
#include "drivers/accelerator.h"

uint32_t hook_calls[3];

void accelerator_before(void)
{
    hook_calls[0]++;
    __asm volatile("dsb" ::: "memory");
}

void accelerator_wait(void)
{
    hook_calls[1]++; /* and polls */
}

void accelerator_after(void)
{
    hook_calls[2]++;
    __asm volatile("" ::: "memory");
}
#endif

int main(void)
{
    inference();
    return 0;
}
