/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution with sums too wide for the MAC array's accumulators. The array sums over one part of the input channels
 * at a time; the core adds the parts in 32 bits and requantises. */
#ifndef MAC_ARRAY_PARTS_H
#define MAC_ARRAY_PARTS_H

#include <stdint.h>

/* Words of `layer`. */
enum mac_array_parts_word {
    FLAGS, /* of the array's commands, besides MAC_ARRAY_RAW */
    PARTS,
    PART_CHANNELS, /* input channels per part; the last part has the rest */
    INPUT_HEIGHT,
    INPUT_WIDTH,
    INPUT_ROW_STRIDE,
    INPUT_PIXEL_STRIDE,
    INPUT_CHANNELS,
    OUTPUT_HEIGHT,
    OUTPUT_WIDTH,
    OUTPUT_ROW_STRIDE,
    OUTPUT_PIXEL_STRIDE,
    OUTPUT_CHANNELS,
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
};

/* Words for each output channel in `channels`. The input's zero point is folded into the biases. */
enum mac_array_parts_channel { BIAS, MULTIPLIER, SHIFT, CHANNEL_WORDS };

/* `weights`: in the array's layout, part after part, each aligned to 16 bytes. `parameters`: in the array's layout,
 * with biases of 0. `scratch`: two output rows of int32. Returns 0 or the array's error code. */
int32_t mac_array_in_parts(const int8_t *input, const int8_t *weights, const uint8_t *parameters, const int32_t *channels,
                           const int32_t *layer, int32_t *scratch, int8_t *output);

#endif
