/* Programs for the vector unit: vector16.c runs them on the hardware, vector16_on_core.c on the core. */
#ifndef VECTOR16_H
#define VECTOR16_H

#include <stdint.h>

enum { VECTOR16_LANES = 16 };

/* The words of `shape`: rows of runs of elements. Strides in bytes. */
enum vector16_shape {
    ROWS,
    RUNS,
    ELEMENTS,
    FIRST_ROW_STRIDE,
    FIRST_RUN_STRIDE,
    SECOND_ROW_STRIDE,
    SECOND_RUN_STRIDE,
    OUTPUT_ROW_STRIDE,
    OUTPUT_RUN_STRIDE,
};

/* Run the program on every run of elements, without waiting for the last run. Return 0. Unary ops ignore `second`. */
int32_t vector16_start(void *first, void *second, void *output, const int32_t *program, int32_t words, const int32_t *shape);

/* Wait for the last run, at once if there is none. Return 0, or the unit's error code. */
int32_t vector16_wait(void);

/* A program's pointers: the operands and the output. */
struct vector16_pointers {
    int8_t *at[3];
};

static inline struct vector16_pointers vector16_pointers(void *first, void *second, void *output, int32_t row, int32_t run,
                                                         const int32_t *shape)
{
    return (struct vector16_pointers){{
        (int8_t *)first + row * shape[FIRST_ROW_STRIDE] + run * shape[FIRST_RUN_STRIDE],
        (int8_t *)second + row * shape[SECOND_ROW_STRIDE] + run * shape[SECOND_RUN_STRIDE],
        (int8_t *)output + row * shape[OUTPUT_ROW_STRIDE] + run * shape[OUTPUT_RUN_STRIDE],
    }};
}

#endif
