/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of stride 1, an output row at a time. The core prepares a plane of the input per channel. */
#include "mla_driver.h"

#include <string.h>

struct planes {
    struct mla_convolution call;
    const struct mla_command *tile;
    int32_t *sums[2];
    int32_t width; /* of a row of sums */
};

/* Write each channel of a pixel to its plane. */
static void spread(const int8_t *pixel, int32_t channels, int8_t *to, int32_t plane)
{
#ifdef __ARM_FEATURE_DSP
    int32_t value;
    __asm__ volatile("1: ldrb %[value], [%[pixel]], #1\n"
                     "strb %[value], [%[to]]\n"
                     "add %[to], %[to], %[plane]\n"
                     "subs %[channels], %[channels], #1\n"
                     "bne 1b\n"
                     : [value] "=&r"(value), [pixel] "+r"(pixel), [to] "+r"(to), [channels] "+r"(channels)
                     : [plane] "r"(plane)
                     : "cc", "memory");
#else
    for (int32_t c = 0; c < channels; c++, to += plane) {
        *to = pixel[c];
    }
#endif
}

/* Write the planes of input lines from `first` on, with borders. Lines outside the input are padding. */
static void make_planes(const struct planes *all, int32_t first, int32_t lines, int8_t *planes)
{
    const struct mla_command *tile = all->tile;
    const int32_t channels = tile->input_channels, plane = all->call.plane_stride;
    memset(planes, tile->input_zero, (size_t)(plane * channels));
    for (int32_t line = 0; line < lines; line++) {
        const int32_t y = first + line;
        const int8_t *pixel = tile->input + y * tile->input_row_stride;
        int8_t *from = planes + line * all->call.row_stride + tile->pad_left;
        for (int32_t x = 0; y >= 0 && y < tile->input_height && x < tile->input_width; x++) {
            spread(pixel, channels, from + x, plane);
            pixel += tile->input_pixel_stride;
        }
    }
}

static void finish_row(const struct planes *all, int32_t y, int32_t half)
{
    const struct mla_command *tile = all->tile;
    if (y >= 0) {
        const struct mla_results results = {
            .sums = all->sums[half],
            .channels = tile->channels,
            .tile = tile,
            .step = 1,
            .turn = all->width,
            .pixels = tile->output_width,
            .count = tile->output_channels,
            .planes = 1,
            .stride = tile->output_pixel_stride,
            .unit = 1,
            .to = tile->output + y * tile->output_row_stride,
        };
        mla_requantise(&results);
    }
}

static int8_t *share_out(struct planes *all)
{
    int8_t *scratch = all->tile->scratch;
    const int32_t bytes = 4 * all->width * all->tile->output_channels;
    int8_t *planes = mla_room(&scratch, all->call.plane_stride * all->tile->input_channels);
    all->sums[0] = (int32_t *)(void *)mla_room(&scratch, bytes);
    all->sums[1] = (int32_t *)(void *)mla_room(&scratch, bytes);
    return planes;
}

static struct mla_convolution call_of(const struct mla_command *tile, int32_t lines)
{
    const int32_t width = mla_padded(tile->output_width, MLA_WIDTH);
    const int32_t row_stride = mla_padded(width + tile->kernel_width - 1, MLA_WIDTH);
    return (struct mla_convolution){
        .weights = tile->weights,
        .rows = 1,
        .width = tile->output_width,
        .channels = tile->output_channels,
        .input_channels = tile->input_channels,
        .kernel_height = tile->kernel_height,
        .kernel_width = tile->kernel_width,
        .row_stride = row_stride,
        .plane_stride = row_stride * lines,
    };
}

int32_t mla_planes(const struct mla_command *tile)
{
    const int32_t lines = tile->pixels + tile->kernel_height - 1, height = tile->output_height;
    struct planes all = {.call = call_of(tile, lines), .tile = tile, .width = mla_padded(tile->output_width, MLA_WIDTH)};
    int8_t *planes = share_out(&all);
    int32_t error = 0;
    for (int32_t y = 0; y < height && error == 0; y++) {
        const int32_t line = y % tile->pixels;
        if (line == 0) {
            make_planes(&all, y - tile->pad_top, lines, planes);
        }
        all.call.input = planes + line * all.call.row_stride;
        all.call.target = all.sums[y % 2];
        mla_execute_conv(&all.call);
        finish_row(&all, y - 1, 1 - y % 2);
        error = mla_finish();
    }
    finish_row(&all, height - 1, 1 - height % 2);
    return error;
}
