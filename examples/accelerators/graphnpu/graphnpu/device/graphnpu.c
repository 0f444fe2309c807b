/* The graph NPU's driver: graphnpu.md. */
#include "graphnpu.h"

#include "accelerator.h"
#include "board.h"

struct graphnpu_registers {
    volatile uint32_t start;
    const volatile uint32_t status;
    volatile uint32_t error; /* cleared by any write */
    volatile uint32_t base[6]; /* scratch, output, inputs */
};

enum { STATUS_BUSY = 1 };

#define GRAPHNPU ((struct graphnpu_registers *)BOARD_GRAPHNPU_BASE)

int32_t graphnpu_start(const uint8_t *blob, void *scratch, void *output, void *first, void *second, void *third, void *fourth)
{
    void *const places[6] = {scratch, output, first, second, third, fourth};
    for (int i = 0; i < 6; i++) {
        GRAPHNPU->base[i] = (uint32_t)(uintptr_t)places[i];
    }
    accelerator_before();
    GRAPHNPU->start = (uint32_t)(uintptr_t)blob;
    return 0;
}

int32_t graphnpu_wait(void)
{
    while ((GRAPHNPU->status & STATUS_BUSY) != 0) {
        accelerator_wait(); /* the end sets the event register, also between the test and here */
    }
    accelerator_after();
    const int32_t error = (int32_t)GRAPHNPU->error;
    if (error != 0) {
        GRAPHNPU->error = 0;
    }
    return error;
}
