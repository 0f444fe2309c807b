/* SPDX-License-Identifier: Apache-2.0 */
/* Layers for a machine-learning array, and what of their arithmetic it does not do: bias and requantisation.
 *
 * mla.c drives the array through mla_library.h, mla_on_core.c computes the same on the core. */
#ifndef MLA_H
#define MLA_H

#include <stdint.h>

enum { MLA_WIDTH = 16, MLA_LANES = 4 };

/* The way in which the array computes a layer. `weights`, and what `scratch` has room for, each part in whole 16 bytes:
 *
 * lines: products of the input's lines, `part` bytes of a line of the kernel at a time, as many as the array's sums have
 * bits for. [channels / 16][y][x][input channel][16]. A line of the kernel, twice the sums of a run of pixels, in as many
 * planes of `columns` as the kernel has such parts; with padding at the sides, or where a line's pixels lie apart, as
 * many lines of the input, padded.
 * windows: products of gathered windows. [channels / 16][y][x][input channel, all together padded to 16][16]. Twice
 * `pixels` windows and their sums.
 * shifted: the same where the array's own output stage does: `slots` bytes behind each window, the last of them 1 and the
 * others 127, bring the biases, and `right` is the shift.
 * planes: convolutions of stride 1. [channels / 4][input channel][y][x][4]. The planes of the input with their borders for
 * `pixels` rows of the output, and twice the sums of a row. */
enum mla_kind { MLA_LINES, MLA_WINDOWS, MLA_SHIFTED, MLA_PLANES };

/* A tile of a layer, strides in bytes. */
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
    const int8_t *more; /* what is added, or 0: int32 to the sums, or int8 to the results as `addition` says */
    int32_t more_row_stride, more_pixel_stride;
    const int32_t *addition;
    int16_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x;
    int16_t pad_top, pad_left, pad_right;
    int16_t pixels;  /* at a time; planes: rows of the output for which there are planes */
    int16_t columns; /* of the sums of a run at a time, a multiple of 16 */
    int16_t slots;
    int8_t input_zero, output_zero, clamp_min, clamp_max;
    uint8_t right;
    uint8_t plain; /* all channels are shifted to the right, and limits are those of an int8 */
    uint8_t raw;   /* the output is the sums with their biases, as int32 */
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(sizeof(struct mla_command) == 120, "a command is 30 words");
#endif

/* The words of `channels`, for each output channel. */
enum mla_channel { BIAS, MULTIPLIER, SHIFT, CHANNEL_WORDS };

/* Compute a chain of tiles one after the other. 0, or the array's error. */
int32_t mla_run(const struct mla_command *first);

/* Compute one tile and ignore its `next`. 0, or the array's error. */
int32_t mla_run_one(const struct mla_command *tile);

/* The words of `addition`: of the doubled sum of both operands in the 20th bit, of which each value of the one that is
 * `looked up`, from -128 on, has its share in a table, zero points included. */
enum mla_addition { SUM_MULTIPLIER, SUM_RIGHT, SUM_ZERO, SUM_LOW, SUM_HIGH, LOOKS_RESULT_UP, SHARES, SHARE_BITS = 20 };

/* The bytes of an output, and of an element of what is added. */
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

/* What an output channel's sums go through, as few registers as can be: `half` has the output's zero point as well. */
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

/* A sum as TensorFlow Lite makes an int8 of it, rounded twice. The plug-in has proven that `up` loses no bit. */
static inline int8_t mla_finished(int32_t sum, struct mla_stage stage)
{
    const int32_t shifted = (int32_t)((uint32_t)(sum + stage.bias) << stage.up);
    const int32_t high = (int32_t)(((int64_t)shifted * stage.multiplier + ((int64_t)1 << 31)) >> 32);
    const int32_t value = (high + stage.half + ((high >> 31) & stage.negative)) >> stage.right;
    const int32_t raised = value < stage.low ? stage.low : value;
    return (int8_t)(raised > stage.high ? stage.high : raised);
}

/* The place of what is added to the results of a pixel, from a channel on; 0 if nothing is. */
static inline const int8_t *mla_more(const struct mla_command *tile, int32_t y, int32_t x, int32_t channel)
{
    if (tile->more == 0) {
        return 0;
    }
    return tile->more + y * tile->more_row_stride + x * tile->more_pixel_stride + channel * mla_more_bytes(tile);
}

/* The sum of a result and what is added to it, as TensorFlow Lite rounds it. */
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
