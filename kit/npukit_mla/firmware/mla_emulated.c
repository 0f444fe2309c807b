/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of mla_library.h for the array of npukit's emulator (mla_model.c). */
#include "accelerator.h"
#include "board.h"
#include "mla_library.h"

struct mla_registers {
    volatile uint32_t command;
    const volatile uint32_t status;
    volatile uint32_t error; /* any write clears the error */
    volatile uint32_t a, b, target;
    volatile int32_t rows, depth, columns, a_stride;
    volatile int32_t channels, kernel_height, kernel_width, row_stride, plane_stride;
    volatile int32_t right;
};

enum { MULTIPLY = 1, CONVOLVE = 2, BUSY = 1 };

#define MLA ((struct mla_registers *)BOARD_MLA_BASE)

static uint32_t address(const void *place)
{
    return (uint32_t)(uintptr_t)place;
}

static void start(uint32_t command)
{
    accelerator_before();
    MLA->command = command;
}

void mla_execute_mm(const struct mla_product *product)
{
    MLA->a = address(product->a);
    MLA->b = address(product->b);
    MLA->target = address(product->target);
    MLA->rows = product->rows;
    MLA->depth = product->depth;
    MLA->columns = product->columns;
    MLA->a_stride = product->a_stride;
    MLA->right = product->right;
    start(MULTIPLY);
}

void mla_execute_conv(const struct mla_convolution *convolution)
{
    MLA->a = address(convolution->weights);
    MLA->b = address(convolution->input);
    MLA->target = address(convolution->target);
    MLA->rows = convolution->rows;
    MLA->columns = convolution->width;
    MLA->channels = convolution->channels;
    MLA->depth = convolution->input_channels;
    MLA->kernel_height = convolution->kernel_height;
    MLA->kernel_width = convolution->kernel_width;
    MLA->row_stride = convolution->row_stride;
    MLA->plane_stride = convolution->plane_stride;
    start(CONVOLVE);
}

int32_t mla_finish(void)
{
    while ((MLA->status & BUSY) != 0) {
        accelerator_wait(); /* completion sets the event register, also between test and wait */
    }
    accelerator_after();
    const int32_t error = (int32_t)MLA->error;
    MLA->error = 0;
    return error;
}
