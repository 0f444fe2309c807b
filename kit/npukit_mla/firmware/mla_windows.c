/* SPDX-License-Identifier: Apache-2.0 */
/* Products of windows gathered by the core. While the array works on a pass, the core requantises the pass before and
 * gathers the next. */
#include "mla_driver.h"

#include <string.h>

struct windows {
    const struct mla_command *tile;
    int8_t *rows[2];
    int32_t *sums[2];
    int32_t depth, columns, pixels;
};

/* A word at any address, for copies of four bytes at a time: a core with unaligned loads needs a single instruction. */
typedef uint32_t __attribute__((aligned(1), may_alias)) word;

static void copy(int8_t *to, const int8_t *from, int32_t bytes)
{
    int32_t i = 0;
    for (; i + 4 <= bytes; i += 4) {
        *(word *)(void *)(to + i) = *(const word *)(const void *)(from + i);
    }
    for (; i < bytes; i++) {
        to[i] = from[i];
    }
}

static void gather_line(const struct mla_command *tile, const int8_t *line, int32_t first, int8_t *to)
{
    const int32_t channels = tile->input_channels;
    for (int32_t kx = 0; kx < tile->kernel_width; kx++, to += channels) {
        const int32_t column = first + kx * tile->dilation_x;
        if (column < 0 || column >= tile->input_width) {
            memset(to, tile->input_zero, (size_t)channels);
        } else {
            copy(to, line + column * tile->input_pixel_stride, channels);
        }
    }
}

static int32_t lies_dense(const struct mla_command *tile, int32_t first)
{
    return tile->dilation_x == 1 && tile->input_pixel_stride == tile->input_channels && first >= 0 &&
           first + tile->kernel_width <= tile->input_width;
}

/* Gather the window of an output pixel as a row of a product. */
static void gather_pixel(const struct mla_command *tile, int32_t pixel, int8_t *to)
{
    const int32_t y = pixel / tile->output_width, x = pixel % tile->output_width;
    const int32_t first = x * tile->stride_x - tile->pad_left, bytes = tile->kernel_width * tile->input_channels;
    for (int32_t ky = 0; ky < tile->kernel_height; ky++, to += bytes) {
        const int32_t row = y * tile->stride_y + ky * tile->dilation_y - tile->pad_top;
        const int8_t *line = tile->input + row * tile->input_row_stride;
        if (row < 0 || row >= tile->input_height) {
            memset(to, tile->input_zero, (size_t)bytes);
        } else if (lies_dense(tile, first)) {
            copy(to, line + first * tile->input_pixel_stride, bytes);
        } else {
            gather_line(tile, line, first, to);
        }
    }
}

static int32_t count_from(const struct windows *all, int32_t pixel)
{
    return pixel < 0 ? 0 : mla_smaller(all->pixels - pixel, all->tile->pixels);
}

static void gather(const struct windows *all, int32_t pixel, int32_t half)
{
    const int32_t count = count_from(all, pixel);
    for (int32_t i = 0; i < count; i++) {
        gather_pixel(all->tile, pixel + i, all->rows[half] + i * all->depth);
    }
}

static void start_products(const struct windows *all, int32_t pixel, int32_t half)
{
    const struct mla_product product = {
        .a = all->rows[half],
        .b = all->tile->weights,
        .target = all->sums[half],
        .rows = count_from(all, pixel),
        .depth = all->depth,
        .columns = all->columns,
        .a_stride = all->depth,
        .right = all->tile->kind == MLA_SHIFTED ? all->tile->right : 0,
    };
    mla_execute_mm(&product);
}

/* Finish consecutive pixels at equal strides. */
static void finish_run(const struct windows *all, int32_t *sums, int32_t pixel, int32_t count)
{
    const struct mla_command *tile = all->tile;
    const int32_t y = pixel / tile->output_width, x = pixel % tile->output_width;
    const struct mla_results results = {
        .sums = sums,
        .channels = tile->channels,
        .tile = tile,
        .step = all->columns,
        .turn = 1,
        .pixels = count,
        .count = tile->output_channels,
        .planes = 1,
        .stride = tile->output_pixel_stride,
        .unit = mla_output_bytes(tile),
        .more = mla_more(tile, y, x, 0),
        .to = tile->output + y * tile->output_row_stride + x * tile->output_pixel_stride,
    };
    mla_requantise(&results);
}

static void narrow_pixels(const struct windows *all, int32_t pixel, int32_t half)
{
    const struct mla_command *tile = all->tile;
    const uint16_t *from = (const uint16_t *)(const void *)all->sums[half];
    const int32_t count = count_from(all, pixel);
    for (int32_t i = 0; i < count; i++, from += all->columns) {
        const int32_t y = (pixel + i) / tile->output_width, x = (pixel + i) % tile->output_width;
        int8_t *to = tile->output + y * tile->output_row_stride + x * tile->output_pixel_stride;
        mla_narrow(from, to, tile->output_channels, tile->clamp_max);
    }
}

static void finish_pixels(const struct windows *all, int32_t pixel, int32_t half)
{
    const struct mla_command *tile = all->tile;
    if (tile->kind == MLA_SHIFTED) {
        narrow_pixels(all, pixel, half);
        return;
    }
    int32_t *sums = all->sums[half];
    const int32_t width = tile->output_width;
    const int dense = tile->output_row_stride == width * tile->output_pixel_stride &&
                      (tile->more == 0 || tile->more_row_stride == width * tile->more_pixel_stride);
    for (int32_t left = count_from(all, pixel); left > 0;) {
        const int32_t in_row = width - pixel % width;
        const int32_t count = in_row < left && !dense ? in_row : left;
        finish_run(all, sums, pixel, count);
        sums += count * all->columns;
        pixel += count;
        left -= count;
    }
}

static int32_t used(const struct mla_command *tile)
{
    return tile->kernel_height * tile->kernel_width * tile->input_channels;
}

/* Set the bytes behind the last product of each row: biases, or bytes that meet weights of zero. */
static void set_tails(const struct windows *all, int8_t *rows)
{
    const struct mla_command *tile = all->tile;
    for (int32_t i = 0; i < tile->pixels; i++) {
        int8_t *tail = rows + i * all->depth + used(tile);
        memset(tail, 127, (size_t)(all->depth - used(tile)));
        if (tile->slots > 0) {
            tail[tile->slots - 1] = 1;
        }
    }
}

static void share_out(struct windows *all)
{
    int8_t *scratch = all->tile->scratch;
    for (int32_t half = 0; half < 2; half++) {
        all->rows[half] = mla_room(&scratch, all->tile->pixels * all->depth);
        all->sums[half] = (int32_t *)(void *)mla_room(&scratch, 4 * all->tile->pixels * all->columns);
        set_tails(all, all->rows[half]);
    }
}

int32_t mla_windows(const struct mla_command *tile)
{
    struct windows all = {
        .tile = tile,
        .depth = mla_padded(used(tile) + tile->slots, MLA_WIDTH),
        .columns = mla_padded(tile->output_channels, MLA_WIDTH),
        .pixels = tile->output_height * tile->output_width,
    };
    int32_t half = 0, before = -1, error = 0;
    share_out(&all);
    gather(&all, 0, half);
    for (int32_t pixel = 0; pixel < all.pixels && error == 0; pixel += tile->pixels) {
        start_products(&all, pixel, half);
        finish_pixels(&all, before, 1 - half);
        gather(&all, pixel + tile->pixels, 1 - half);
        error = mla_finish();
        before = pixel;
        half = 1 - half;
    }
    finish_pixels(&all, before, 1 - half);
    return error;
}
