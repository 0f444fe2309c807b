/* Layers for the 8 x 8 systolic array, and the arithmetic left to the core.
 *
 * systolic8x8_layer has two implementations: systolic8x8.c drives the hardware, systolic8x8_on_core.c computes the same
 * on the core, for boards without the array. */
#ifndef SYSTOLIC8X8_H
#define SYSTOLIC8X8_H

#include <stdint.h>

enum { SYSTOLIC8X8_SIDE = 8 };

/* The words of `layer`. Strides in bytes. */
enum systolic8x8_layer {
    INPUT_HEIGHT,
    INPUT_WIDTH,
    INPUT_CHANNELS,
    INPUT_ROW_STRIDE,
    INPUT_PIXEL_STRIDE,
    OUTPUT_HEIGHT,
    OUTPUT_WIDTH,
    OUTPUT_CHANNELS,
    OUTPUT_ROW_STRIDE,
    OUTPUT_PIXEL_STRIDE,
    KERNEL_HEIGHT,
    KERNEL_WIDTH,
    STRIDE_Y,
    STRIDE_X,
    DILATION_Y,
    DILATION_X,
    PAD_TOP,
    PAD_LEFT,
    INPUT_ZERO,
    OUTPUT_ZERO,
    CLAMP_MIN,
    CLAMP_MAX,
    ROWS_AT_ONCE, /* pixels of a row that fit into both scratchpad and accumulators */
};

/* The words of `channels`, for each output channel. */
enum systolic8x8_channel { BIAS, MULTIPLIER, SHIFT, CHANNEL_WORDS };

/* Compute a convolution, or a dense layer as a convolution with a single pixel. `weights`: [channels / 8][products,
 * padded to 8][8]. `scratch`: room for 32 * ROWS_AT_ONCE bytes. Return 0, or the array's error code. */
int32_t systolic8x8_layer(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                          void *output);

/* Return the number of products in a sum, padded to whole sides of the array. */
static inline int32_t systolic8x8_depth(const int32_t *layer)
{
    const int32_t depth = layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH] * layer[INPUT_CHANNELS];
    return (depth + SYSTOLIC8X8_SIDE - 1) / SYSTOLIC8X8_SIDE * SYSTOLIC8X8_SIDE;
}

/* The requantisation of an output channel, kept in registers: no store to the output can change it there. */
struct systolic8x8_stage {
    int32_t bias, multiplier, left, right, zero, low, high;
};

static inline struct systolic8x8_stage systolic8x8_stage(const int32_t *channel, const int32_t *layer)
{
    const int32_t shift = channel[SHIFT];
    return (struct systolic8x8_stage){channel[BIAS],      channel[MULTIPLIER], shift > 0 ? shift : 0, shift < 0 ? -shift : 0,
                                      layer[OUTPUT_ZERO], layer[CLAMP_MIN],    layer[CLAMP_MAX]};
}

/* Convert an accumulator to int8 like TensorFlow Lite: the left shift wraps, and the result is rounded twice. */
static inline int8_t systolic8x8_finish(int32_t accumulator, struct systolic8x8_stage stage)
{
    const int32_t shifted = (int32_t)(((uint32_t)accumulator + (uint32_t)stage.bias) << stage.left);
    const int32_t high = (int32_t)(((int64_t)shifted * stage.multiplier + ((int64_t)1 << 30)) >> 31);
    const int32_t half = (int32_t)((1U << stage.right) >> 1);
    const int32_t value = ((high + half - (stage.right > 0 && high < 0)) >> stage.right) + stage.zero;
    const int32_t raised = value < stage.low ? stage.low : value;
    return (int8_t)(raised > stage.high ? stage.high : raised);
}

#endif
