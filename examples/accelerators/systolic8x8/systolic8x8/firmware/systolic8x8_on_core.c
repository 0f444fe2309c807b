/* The computation of the systolic array and the driver, on the core alone, sum by sum. */
#include "systolic8x8.h"

static int32_t sum_of_row(const int8_t *row, int32_t x, const int8_t *weights, const int32_t *layer)
{
    int32_t sum = 0;
    for (int32_t kx = 0; kx < layer[KERNEL_WIDTH]; kx++) {
        const int32_t column = x * layer[STRIDE_X] + kx * layer[DILATION_X] - layer[PAD_LEFT];
        const int inside = row != 0 && column >= 0 && column < layer[INPUT_WIDTH];
        for (int32_t c = 0; c < layer[INPUT_CHANNELS]; c++) {
            sum += *weights * (inside ? row[column * layer[INPUT_PIXEL_STRIDE] + c] : layer[INPUT_ZERO]);
            weights += SYSTOLIC8X8_SIDE;
        }
    }
    return sum;
}

static int32_t sum_of_window(const int8_t *input, int32_t y, int32_t x, const int8_t *weights, const int32_t *layer)
{
    int32_t sum = 0;
    for (int32_t ky = 0; ky < layer[KERNEL_HEIGHT]; ky++) {
        const int32_t row = y * layer[STRIDE_Y] + ky * layer[DILATION_Y] - layer[PAD_TOP];
        const int inside = row >= 0 && row < layer[INPUT_HEIGHT];
        sum += sum_of_row(inside ? input + row * layer[INPUT_ROW_STRIDE] : 0, x, weights, layer);
        weights += SYSTOLIC8X8_SIDE * layer[KERNEL_WIDTH] * layer[INPUT_CHANNELS];
    }
    return sum;
}

int32_t systolic8x8_layer(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                          void *output)
{
    const int32_t depth = systolic8x8_depth(layer);
    (void)scratch;
    for (int32_t y = 0; y < layer[OUTPUT_HEIGHT]; y++) {
        for (int32_t x = 0; x < layer[OUTPUT_WIDTH]; x++) {
            int8_t *pixel = (int8_t *)output + y * layer[OUTPUT_ROW_STRIDE] + x * layer[OUTPUT_PIXEL_STRIDE];
            for (int32_t c = 0; c < layer[OUTPUT_CHANNELS]; c++) {
                const int32_t block = c / SYSTOLIC8X8_SIDE * SYSTOLIC8X8_SIDE;
                const int8_t *column = weights + block * depth + c % SYSTOLIC8X8_SIDE;
                const struct systolic8x8_stage stage = systolic8x8_stage(channels + CHANNEL_WORDS * c, layer);
                pixel[c] = systolic8x8_finish(sum_of_window(input, y, x, column, layer), stage);
            }
        }
    }
    return 0;
}
