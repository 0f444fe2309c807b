/* Layers for a machine-learning array, and what of their arithmetic it does not do: bias and requantisation.
 *
 * mla.c drives the array through mla_library.h, mla_on_core.c computes the same on the core. */
#ifndef MLA_H
#define MLA_H

#include <stdint.h>

enum { MLA_WIDTH = 16, MLA_LANES = 4 };

/* The words of `layer`. Strides in bytes. */
enum mla_layer {
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
    AT_ONCE,  /* pixels of a product; rows of the output for which a convolution makes planes */
    IN_PLACE, /* the pixels are the rows of a product where they lie */
    PLAIN,    /* all channels are shifted to the right, and limits are those of an int8 */
};

/* The words of `channels`, for each output channel. */
enum mla_channel { BIAS, MULTIPLIER, SHIFT, CHANNEL_WORDS };

/* As products of matrices. `weights`: [channels / 16][depth][16], products of a sum padded to 16. `scratch`: twice
 * AT_ONCE rows of a product, unless IN_PLACE, and twice its results. 0, or the array's error. */
int32_t mla_products(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                     void *output);

/* As a convolution of stride 1. `weights`: [channels / 4][input channel][ky][kx][4]. `scratch`: the planes of the input
 * with their borders for AT_ONCE rows of the output, and the results of a row
 * twice. */
int32_t mla_convolution(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                        void *output);

static inline int32_t mla_padded(int32_t count, int32_t to)
{
    return (count + to - 1) / to * to;
}

/* What an output channel's sums go through, as few registers as can be: `half` has the output's zero point as well. */
struct mla_stage {
    int32_t bias, multiplier, up, half, negative, right, low, high;
};

static inline struct mla_stage mla_stage(const int32_t *channel, const int32_t *layer)
{
    const int32_t shift = channel[SHIFT], right = shift < 0 ? -shift : 0;
    return (struct mla_stage){
        .bias = channel[BIAS],
        .multiplier = channel[MULTIPLIER],
        .up = (shift > 0 ? shift : 0) + 1,
        .half = (int32_t)((1U << right) >> 1) + layer[OUTPUT_ZERO] * (1 << right),
        .negative = right > 0 ? -1 : 0,
        .right = right,
        .low = layer[CLAMP_MIN],
        .high = layer[CLAMP_MAX],
    };
}

/* A sum as TensorFlow Lite makes an int8 of it, rounded twice. The plug-in has proven that `up` loses no bit. */
static inline int8_t mla_finished(int32_t sum, struct mla_stage stage)
{
    const int32_t shifted = (int32_t)((uint32_t)(sum + stage.bias) << stage.up);
    const int32_t high = (int32_t)(((int64_t)shifted * stage.multiplier + ((int64_t)1 << 31)) >> 32);
    const int32_t value = (high + stage.half + ((high >> 31) & stage.negative)) >> stage.right;
    const int32_t raised = value < stage.low ? stage.low : value;
    return (int8_t)(raised > stage.high ? stage.high : raised);
}

#endif
