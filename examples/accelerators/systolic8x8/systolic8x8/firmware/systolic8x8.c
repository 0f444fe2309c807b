/* The systolic array's driver: systolic8x8.md. For each row of the output, gather the pixels' windows in the
 * scratchpad. Then multiply on the array, eight output channels at a time, while the core requantises the previous
 * eight. */
#include "systolic8x8.h"

#include "accelerator.h"
#include "board.h"

struct systolic8x8_registers {
    volatile uint32_t command;
    const volatile uint32_t status;
    volatile uint32_t error; /* cleared by any write */
    volatile uint32_t address;
    volatile int32_t stride;
    volatile int32_t place;
    volatile int32_t place_stride;
    volatile int32_t rows;
    volatile int32_t bytes;
    volatile int32_t depth;
    volatile int32_t value;
};

enum command { FILL = 1, LOAD = 2, MULTIPLY = 3, STORE = 4 };
enum { STATUS_BUSY = 1 };

#define SYSTOLIC8X8 ((struct systolic8x8_registers *)BOARD_SYSTOLIC8X8_BASE)

static void start(enum command command)
{
    accelerator_before();
    SYSTOLIC8X8->command = command;
}

static void finish(void)
{
    while ((SYSTOLIC8X8->status & STATUS_BUSY) != 0) {
        accelerator_wait(); /* the end of a command sets the event register, also between the test and here */
    }
    accelerator_after();
}

static int32_t take_error(void)
{
    const int32_t error = (int32_t)SYSTOLIC8X8->error;
    SYSTOLIC8X8->error = 0;
    return error;
}

/* ---- gathering the windows of `count` pixels from output position (y, x) on ---- */

struct pixels {
    int32_t y, x, count, depth;
};

/* Return the least x >= 0 whose input column, x * stride + first, is not negative. */
static int32_t first_inside(int32_t first, int32_t stride)
{
    return first >= 0 ? 0 : (-first + stride - 1) / stride;
}

/* Return the first x whose input column is beyond the input, at most `count`. */
static int32_t first_behind(int32_t first, int32_t stride, int32_t width, int32_t count)
{
    const int32_t behind = first >= width ? 0 : (width - first + stride - 1) / stride;
    return behind < count ? behind : count;
}

static void load_tap(const int8_t *row, struct pixels pixels, int32_t ky, int32_t kx, const int32_t *layer)
{
    const int32_t stride = layer[STRIDE_X];
    const int32_t first = pixels.x * stride + kx * layer[DILATION_X] - layer[PAD_LEFT];
    const int32_t begin = first_inside(first, stride);
    const int32_t end = first_behind(first, stride, layer[INPUT_WIDTH], pixels.count);
    if (begin >= end) {
        return;
    }
    SYSTOLIC8X8->address = (uint32_t)(uintptr_t)(row + (first + begin * stride) * layer[INPUT_PIXEL_STRIDE]);
    SYSTOLIC8X8->place = begin * pixels.depth + (ky * layer[KERNEL_WIDTH] + kx) * layer[INPUT_CHANNELS];
    SYSTOLIC8X8->rows = end - begin;
    start(LOAD);
    finish();
}

static void fill(struct pixels pixels, int32_t value)
{
    SYSTOLIC8X8->place = 0;
    SYSTOLIC8X8->place_stride = pixels.depth;
    SYSTOLIC8X8->rows = pixels.count;
    SYSTOLIC8X8->bytes = pixels.depth;
    SYSTOLIC8X8->value = value;
    start(FILL);
    finish();
}

static void gather(const int8_t *input, struct pixels pixels, const int32_t *layer)
{
    fill(pixels, layer[INPUT_ZERO]);
    SYSTOLIC8X8->stride = layer[STRIDE_X] * layer[INPUT_PIXEL_STRIDE];
    SYSTOLIC8X8->bytes = layer[INPUT_CHANNELS];
    for (int32_t ky = 0; ky < layer[KERNEL_HEIGHT]; ky++) {
        const int32_t y = pixels.y * layer[STRIDE_Y] + ky * layer[DILATION_Y] - layer[PAD_TOP];
        for (int32_t kx = 0; y >= 0 && y < layer[INPUT_HEIGHT] && kx < layer[KERNEL_WIDTH]; kx++) {
            load_tap(input + y * layer[INPUT_ROW_STRIDE], pixels, ky, kx, layer);
        }
    }
}

/* ---- multiplying ---- */

static void start_multiply(const int8_t *weights, struct pixels pixels)
{
    SYSTOLIC8X8->address = (uint32_t)(uintptr_t)weights;
    SYSTOLIC8X8->place = 0;
    SYSTOLIC8X8->rows = pixels.count;
    SYSTOLIC8X8->depth = pixels.depth;
    start(MULTIPLY);
}

static void store(const int32_t *accumulators)
{
    SYSTOLIC8X8->address = (uint32_t)(uintptr_t)accumulators;
    start(STORE);
    finish();
}

static void requantise(const int32_t *accumulators, int32_t count, int32_t columns, const int32_t *channels,
                       const int32_t *layer, int8_t *output)
{
    const int32_t stride = layer[OUTPUT_PIXEL_STRIDE];
    for (int32_t c = 0; c < columns; c++) {
        const struct systolic8x8_stage stage = systolic8x8_stage(channels + CHANNEL_WORDS * c, layer);
        const int32_t *from = accumulators + c;
        int8_t *to = output + c;
        for (int32_t pixel = 0; pixel < count; pixel++) {
            *to = systolic8x8_finish(*from, stage);
            from += SYSTOLIC8X8_SIDE;
            to += stride;
        }
    }
}

static void multiply(const int8_t *weights, struct pixels pixels, const int32_t *channels, const int32_t *layer,
                     int32_t *scratch, int8_t *output)
{
    start_multiply(weights, pixels);
    for (int32_t done = 0; done < layer[OUTPUT_CHANNELS]; done += SYSTOLIC8X8_SIDE) {
        const int32_t left = layer[OUTPUT_CHANNELS] - done;
        finish();
        store(scratch);
        if (left > SYSTOLIC8X8_SIDE) {
            weights += SYSTOLIC8X8_SIDE * pixels.depth;
            start_multiply(weights, pixels);
        }
        requantise(scratch, pixels.count, left < SYSTOLIC8X8_SIDE ? left : SYSTOLIC8X8_SIDE, channels + CHANNEL_WORDS * done,
                   layer, output + done);
    }
}

int32_t systolic8x8_layer(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                          void *output)
{
    struct pixels pixels = {.depth = systolic8x8_depth(layer)};
    for (pixels.y = 0; pixels.y < layer[OUTPUT_HEIGHT]; pixels.y++) {
        for (pixels.x = 0; pixels.x < layer[OUTPUT_WIDTH]; pixels.x += pixels.count) {
            const int32_t left = layer[OUTPUT_WIDTH] - pixels.x;
            pixels.count = left < layer[ROWS_AT_ONCE] ? left : layer[ROWS_AT_ONCE];
            gather(input, pixels, layer);
            multiply(weights, pixels, channels, layer, scratch,
                     (int8_t *)output + pixels.y * layer[OUTPUT_ROW_STRIDE] + pixels.x * layer[OUTPUT_PIXEL_STRIDE]);
        }
    }
    return take_error();
}
