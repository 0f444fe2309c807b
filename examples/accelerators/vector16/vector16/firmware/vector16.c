/* The vector unit's driver: vector16.md. Load the program, then start it once for each run of elements. */
#include "vector16.h"

#include "accelerator.h"
#include "board.h"

struct vector16_registers {
    volatile uint32_t start; /* write: any value */
    const volatile uint32_t status;
    volatile uint32_t error; /* cleared by any write */
    volatile uint32_t elements;
    volatile uint32_t pointer[4];
};

enum { STATUS_BUSY = 1, PROGRAM = 0x400 };

#define VECTOR16 ((struct vector16_registers *)BOARD_VECTOR16_BASE)
#define VECTOR16_PROGRAM ((volatile uint32_t *)(BOARD_VECTOR16_BASE + PROGRAM))

static void load(const int32_t *program, int32_t words)
{
    for (int32_t i = 0; i < words; i++) {
        VECTOR16_PROGRAM[i] = (uint32_t)program[i];
    }
}

static void sleep_until_done(void)
{
    while ((VECTOR16->status & STATUS_BUSY) != 0) {
        accelerator_wait(); /* the end sets the event register, also between the test and here */
    }
    accelerator_after();
}

static void start(struct vector16_pointers pointers)
{
    for (int i = 0; i < 3; i++) {
        VECTOR16->pointer[i] = (uint32_t)(uintptr_t)pointers.at[i];
    }
    accelerator_before();
    VECTOR16->start = 1;
}

int32_t vector16_start(void *first, void *second, void *output, const int32_t *program, int32_t words, const int32_t *shape)
{
    load(program, words);
    VECTOR16->elements = (uint32_t)shape[ELEMENTS];
    for (int32_t row = 0; row < shape[ROWS]; row++) {
        for (int32_t each = 0; each < shape[RUNS]; each++) {
            sleep_until_done();
            start(vector16_pointers(first, second, output, row, each, shape));
        }
    }
    return 0;
}

int32_t vector16_wait(void)
{
    sleep_until_done();
    const int32_t error = (int32_t)VECTOR16->error;
    VECTOR16->error = 0;
    return error;
}
