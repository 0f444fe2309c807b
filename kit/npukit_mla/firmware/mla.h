/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for a machine-learning array, with the arithmetic left to the core: bias and requantisation.
 *
 * mla.c drives the array through mla_library.h. mla_on_core.c computes the same results on the core. */
#ifndef MLA_H
#define MLA_H

#include <stdint.h>

enum { MLA_WIDTH = 16, MLA_LANES = 4 };

/* The way in which the array computes a layer, with the layout of `weights` and of `scratch`. Each part of `scratch` is
 * padded to 16 bytes.
 *
 * lines: products of the input's lines, `part` bytes of a kernel line at a time, limited by the bits of the array's sums.
 *   Weights: [channels / 16][y][x][input channel][16]. Scratch: a kernel line; two buffers for the sums of a run of pixels,
 *   each with a plane of `columns` per part of the kernel; with padding at the sides, or with gaps between pixels, padded
 *   copies of input lines.
 * windows: products of gathered windows. Weights: [channels / 16][y][x][input channel, all together padded to 16][16].
 *   Scratch: two buffers for `pixels` windows and their sums.
 * shifted: like windows, but the array's output stage shifts the sums by `right`. `slots` bytes behind each window carry
 *   the biases: the last byte is 1, the others are 127.
 * planes: convolutions of stride 1. Weights: [channels / 4][input channel][y][x][4]. Scratch: planes of the input with
 *   borders for `pixels` rows of the output, and two buffers for the sums of a row. */
enum mla_kind { MLA_LINES, MLA_WINDOWS, MLA_SHIFTED, MLA_PLANES };

/* A tile of a layer; strides in bytes. */
struct mla_command {
    const struct mla_command *next;
    uint16_t kind;
    uint16_t tag;
    const int8_t *input;
    const int8_t *weights;
    const int32_t *channels;
    void *scratch;
    int8_t *output;
    int32_t input_height, input_width, input_channels, input_row_stride, input_pixel_stride;
    int32_t output_height, output_width, output_channels, output_row_stride, output_pixel_stride;
    int32_t part;
    const int8_t *more; /* addend, or 0: int32 for the sums; with `addition`, int8 for the results */
    int32_t more_row_stride, more_pixel_stride;
    const int32_t *addition;
    int16_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x;
    int16_t pad_top, pad_left, pad_right;
    int16_t pixels;  /* per pass; planes: rows of the output per set of planes */
    int16_t columns; /* sums of a run per pass, a multiple of 16 */
    int16_t slots;
    int8_t input_zero, output_zero, clamp_min, clamp_max;
    uint8_t right;
    uint8_t plain; /* every channel is shifted to the right, and results are clamped to int8 only */
    uint8_t raw;   /* the output is sums with biases, as int32 */
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(sizeof(struct mla_command) == 120, "a command is 30 words");
#endif

/* The words of `channels`, for each output channel. */
enum mla_channel { BIAS, MULTIPLIER, SHIFT, CHANNEL_WORDS };

/* Compute a chain of tiles in sequence. Returns 0 or the array's error. */
int32_t mla_run(const struct mla_command *first);

/* Compute a tile and ignore its `next`. Returns 0 or the array's error. */
int32_t mla_run_one(const struct mla_command *tile);

/* The words of `addition`. The scaled sum of both operands is doubled, with 20 fraction bits. A table from -128 on has
 * the share of each value of the operand that is looked up, zero points included. */
enum mla_addition { SUM_MULTIPLIER, SUM_RIGHT, SUM_ZERO, SUM_LOW, SUM_HIGH, LOOKS_RESULT_UP, SHARES, SHARE_BITS = 20 };

/* Bytes of an output element, and of an addend. */
static inline int32_t mla_output_bytes(const struct mla_command *tile)
{
    return tile->raw ? (int32_t)sizeof(int32_t) : 1;
}

static inline int32_t mla_more_bytes(const struct mla_command *tile)
{
    return tile->addition != 0 ? 1 : (int32_t)sizeof(int32_t);
}

static inline int32_t mla_padded(int32_t count, int32_t to)
{
    return (count + to - 1) / to * to;
}

/* Requantisation of an output channel, for few registers: `half` includes the output's zero point. */
struct mla_stage {
    int32_t bias, multiplier, up, half, negative, right, low, high;
};

static inline struct mla_stage mla_stage(const int32_t *channel, const struct mla_command *tile)
{
    const int32_t shift = channel[SHIFT], right = shift < 0 ? -shift : 0;
    return (struct mla_stage){
        .bias = channel[BIAS],
        .multiplier = channel[MULTIPLIER],
        .up = (shift > 0 ? shift : 0) + 1,
        .half = (int32_t)((1U << right) >> 1) + tile->output_zero * (1 << right),
        .negative = right > 0 ? -1 : 0,
        .right = right,
        .low = tile->clamp_min,
        .high = tile->clamp_max,
    };
}

/* A sum as int8 with TensorFlow Lite's double rounding. The plug-in has proven that `up` loses no bit. */
static inline int8_t mla_finished(int32_t sum, struct mla_stage stage)
{
    const int32_t shifted = (int32_t)((uint32_t)(sum + stage.bias) << stage.up);
    const int32_t high = (int32_t)(((int64_t)shifted * stage.multiplier + ((int64_t)1 << 31)) >> 32);
    const int32_t value = (high + stage.half + ((high >> 31) & stage.negative)) >> stage.right;
    const int32_t raised = value < stage.low ? stage.low : value;
    return (int8_t)(raised > stage.high ? stage.high : raised);
}

/* Address of the addends of a pixel, from a channel on; 0 without addends. */
static inline const int8_t *mla_more(const struct mla_command *tile, int32_t y, int32_t x, int32_t channel)
{
    if (tile->more == 0) {
        return 0;
    }
    return tile->more + y * tile->more_row_stride + x * tile->more_pixel_stride + channel * mla_more_bytes(tile);
}

/* The sum of a result and its addend, rounded like TensorFlow Lite. */
static inline int8_t mla_added(int32_t result, int32_t more, const int32_t *addition)
{
    const int32_t *shares = addition + SHARES + 128;
    const int32_t looked_up = addition[LOOKS_RESULT_UP] ? result : more, other = addition[LOOKS_RESULT_UP] ? more : result;
    const int32_t sum = shares[looked_up] + other * (1 << SHARE_BITS), right = addition[SUM_RIGHT];
    const int32_t high = (int32_t)(((int64_t)sum * addition[SUM_MULTIPLIER] + ((int64_t)1 << 31)) >> 32);
    const int32_t tie = right > 0 && high < 0 ? -1 : 0;
    const int32_t value = ((high + (int32_t)((1U << right) >> 1) + tie) >> right) + addition[SUM_ZERO];
    const int32_t raised = value < addition[SUM_LOW] ? addition[SUM_LOW] : value;
    return (int8_t)(raised > addition[SUM_HIGH] ? addition[SUM_HIGH] : raised);
}

#endif
