/* SPDX-License-Identifier: Apache-2.0 */
/* The results of the array and its driver, computed on the core alone. */
#include "mla.h"

struct position {
    int32_t y, x, channel;
};

/* The weight of an output channel for an input channel at a position of the window. */
static int8_t weight_of(const struct mla_command *tile, int32_t channel, int32_t place, int32_t c)
{
    const int32_t taps = tile->kernel_height * tile->kernel_width, inputs = tile->input_channels;
    if (tile->kind == MLA_PLANES) {
        const int32_t block = channel / MLA_LANES * inputs + c;
        return tile->weights[(block * taps + place) * MLA_LANES + channel % MLA_LANES];
    }
    const int32_t depth = mla_padded(taps * inputs + tile->slots, MLA_WIDTH), k = place * inputs + c;
    return tile->weights[(channel / MLA_WIDTH * depth + k) * MLA_WIDTH + channel % MLA_WIDTH];
}

static int32_t sum_of(const struct mla_command *tile, struct position at)
{
    int32_t sum = 0;
    for (int32_t place = 0; place < tile->kernel_height * tile->kernel_width; place++) {
        const int32_t ky = place / tile->kernel_width, kx = place % tile->kernel_width;
        const int32_t row = at.y * tile->stride_y + ky * tile->dilation_y - tile->pad_top;
        const int32_t column = at.x * tile->stride_x + kx * tile->dilation_x - tile->pad_left;
        const int inside = row >= 0 && row < tile->input_height && column >= 0 && column < tile->input_width;
        const int8_t *pixel = tile->input + row * tile->input_row_stride + column * tile->input_pixel_stride;
        for (int32_t c = 0; c < tile->input_channels; c++) {
            sum += weight_of(tile, at.channel, place, c) * (inside ? pixel[c] : tile->input_zero);
        }
    }
    return sum;
}

static void finish(const struct mla_command *tile, struct position at)
{
    int8_t *to = tile->output + at.y * tile->output_row_stride + at.x * tile->output_pixel_stride +
                 at.channel * mla_output_bytes(tile);
    const int8_t *more = mla_more(tile, at.y, at.x, at.channel);
    const int32_t *channel = tile->channels + CHANNEL_WORDS * at.channel;
    const int32_t kept = more != 0 && tile->addition == 0 ? *(const int32_t *)(const void *)more : 0;
    const int32_t sum = sum_of(tile, at) + kept;
    if (tile->raw) {
        *(int32_t *)(void *)to = sum + channel[BIAS];
        return;
    }
    const int8_t result = mla_finished(sum, mla_stage(channel, tile));
    *to = tile->addition != 0 ? mla_added(result, *more, tile->addition) : result;
}

int32_t mla_run_one(const struct mla_command *tile)
{
    for (int32_t y = 0; y < tile->output_height; y++) {
        for (int32_t x = 0; x < tile->output_width; x++) {
            for (int32_t c = 0; c < tile->output_channels; c++) {
                finish(tile, (struct position){y, x, c});
            }
        }
    }
    return 0;
}

int32_t mla_run(const struct mla_command *first)
{
    for (const struct mla_command *tile = first; tile != 0; tile = tile->next) {
        (void)mla_run_one(tile);
    }
    return 0;
}
