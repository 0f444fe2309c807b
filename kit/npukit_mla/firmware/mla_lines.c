/* SPDX-License-Identifier: Apache-2.0 */
/* Products of the input's lines, a part of a kernel line at a time; the core adds the sums. The array reads a line in
 * place, or a padded copy.
 *
 * While the array works on a run of pixels, the core finishes the run before: some channels during each product. */
#include "mla_driver.h"

#include <string.h>

/* Pixels of a row, and the columns of their products. */
struct run {
    int32_t y, x, pixels, column, columns;
};

struct lines {
    const struct mla_command *tile;
    int8_t *zeros;  /* a kernel line outside the input */
    int8_t *copies; /* copies of the last input lines, as many as a window spans */
    int32_t next;   /* the next input line to copy */
    int32_t *sums[2];
    int32_t half, planes, most_planes;
    struct mla_results before; /* the unfinished part of the run before */
    int32_t share;
    int32_t error;
};

static void finish(struct lines *all, int32_t channels)
{
    struct mla_results *before = &all->before;
    const int32_t left = before->count, now = mla_smaller(left, channels);
    before->count = now;
    mla_requantise(before);
    before->count = left - now;
    mla_pass(before, now);
}

static int32_t reach(const struct mla_command *tile)
{
    return (tile->kernel_height - 1) * tile->dilation_y + 1;
}

static int32_t lie_apart(const struct mla_command *tile)
{
    return tile->input_pixel_stride != tile->input_channels;
}

/* True if input lines are copied: for padding, or if a kernel line is not contiguous. */
static int32_t are_copied(const struct mla_command *tile)
{
    return tile->pad_left != 0 || tile->pad_right != 0 || (lie_apart(tile) && tile->kernel_width > 1);
}

static int32_t copied_bytes(const struct mla_command *tile)
{
    return mla_padded((tile->pad_left + tile->input_width + tile->pad_right) * tile->input_channels, MLA_WIDTH);
}

static int8_t *copy_of(const struct lines *all, int32_t row)
{
    return all->copies + row % reach(all->tile) * copied_bytes(all->tile);
}

/* Copies 16 bytes at a time: lines are multiples of 16 bytes. */
static void copy_line(const int8_t *from, int8_t *to, int32_t bytes)
{
#ifdef __ARM_FEATURE_DSP
    __asm__ volatile("1: ldmia %[from]!, {r3, r4, r5, r6}\n"
                     "subs %[bytes], %[bytes], #16\n"
                     "stmia %[to]!, {r3, r4, r5, r6}\n"
                     "bgt 1b\n"
                     : [from] "+r"(from), [to] "+r"(to), [bytes] "+r"(bytes)
                     :
                     : "r3", "r4", "r5", "r6", "cc", "memory");
#else
    memcpy(to, from, (size_t)bytes);
#endif
}

/* Copy a line with gaps between pixels, for instance some channels of an input. */
static void gather_line(const struct mla_command *tile, const int8_t *from, int8_t *to)
{
    for (int32_t x = 0; x < tile->input_width; x++, from += tile->input_pixel_stride, to += tile->input_channels) {
        copy_line(from, to, tile->input_channels);
    }
}

/* Copy the input lines that no earlier row of the output needs. The padding around them is set at the start. */
static void copy_lines(struct lines *all, int32_t y)
{
    const struct mla_command *tile = all->tile;
    const int32_t end = mla_smaller(y * tile->stride_y - tile->pad_top + reach(tile), tile->input_height);
    for (; all->next < end; all->next++) {
        int8_t *to = copy_of(all, all->next) + tile->pad_left * tile->input_channels;
        const int8_t *from = tile->input + all->next * tile->input_row_stride;
        if (lie_apart(tile)) {
            gather_line(tile, from, to);
        } else {
            copy_line(from, to, tile->input_width * tile->input_channels);
        }
    }
}

static int32_t line_of(const struct mla_command *tile)
{
    return tile->kernel_width * tile->input_channels;
}

static void multiply(struct lines *all, const struct run *run, const int8_t *a, int32_t stride, int32_t ky)
{
    const struct mla_command *tile = all->tile;
    const int32_t line = line_of(tile);
    const int8_t *b = tile->weights + (run->column / MLA_WIDTH * tile->kernel_height + ky) * line * MLA_WIDTH;
    for (int32_t at = 0; at < line; at += tile->part) {
        const struct mla_product product = {
            .a = a + at,
            .b = b + at * MLA_WIDTH,
            .target = all->sums[all->half] + all->planes * run->pixels * run->columns,
            .rows = run->pixels,
            .depth = mla_smaller(tile->part, line - at),
            .columns = run->columns,
            .a_stride = stride,
        };
        const int32_t error = mla_finish();
        all->error = all->error != 0 ? all->error : error;
        mla_execute_mm(&product);
        all->planes++;
        finish(all, all->share);
    }
}

/* Multiply a kernel line. Lines outside the input add nothing if the zero point is 0. */
static void multiply_line(struct lines *all, const struct run *run, int32_t ky)
{
    const struct mla_command *tile = all->tile;
    const int32_t row = run->y * tile->stride_y + ky * tile->dilation_y - tile->pad_top;
    const int32_t stride = tile->stride_x * (all->copies != 0 ? tile->input_channels : tile->input_pixel_stride);
    if (row >= 0 && row < tile->input_height) {
        const int8_t *line = all->copies != 0 ? copy_of(all, row) : tile->input + row * tile->input_row_stride;
        multiply(all, run, line + run->x * stride, stride, ky);
    } else if (tile->input_zero != 0) {
        multiply(all, run, all->zeros, 0, ky);
    }
}

static void compute(struct lines *all, const struct run *run)
{
    const struct mla_command *tile = all->tile;
    const int32_t words = run->pixels * run->columns;
    all->planes = 0;
    for (int32_t ky = 0; ky < tile->kernel_height; ky++) {
        multiply_line(all, run, ky);
    }
    for (; all->planes < all->most_planes; all->planes++) {
        memset(all->sums[all->half] + all->planes * words, 0, sizeof(int32_t) * (size_t)words);
    }
    finish(all, all->before.count);
    all->before = (struct mla_results){
        .sums = all->sums[all->half],
        .channels = tile->channels + CHANNEL_WORDS * run->column,
        .tile = tile,
        .step = run->columns,
        .turn = 1,
        .pixels = run->pixels,
        .count = mla_smaller(run->columns, tile->output_channels - run->column),
        .planes = all->planes,
        .plane = words,
        .stride = tile->output_pixel_stride,
        .unit = mla_output_bytes(tile),
        .more = mla_more(tile, run->y, run->x, run->column),
        .to = tile->output + run->y * tile->output_row_stride + run->x * tile->output_pixel_stride +
              run->column * mla_output_bytes(tile),
    };
    all->share = (all->before.count + all->most_planes - 1) / all->most_planes;
    all->half = 1 - all->half;
}

static void compute_row(struct lines *all, int32_t y)
{
    const struct mla_command *tile = all->tile;
    const int32_t columns = mla_padded(tile->output_channels, MLA_WIDTH);
    struct run run = {.y = y};
    for (run.x = 0; run.x < tile->output_width; run.x += tile->pixels) {
        run.pixels = mla_smaller(tile->pixels, tile->output_width - run.x);
        for (run.column = 0; run.column < columns && all->error == 0; run.column += run.columns) {
            run.columns = mla_smaller(tile->columns, columns - run.column);
            compute(all, &run);
        }
    }
}

/* True if a kernel line may lie outside the input. */
static int32_t sees_border(const struct mla_command *tile)
{
    const int32_t last = (tile->output_height - 1) * tile->stride_y - tile->pad_top + reach(tile);
    return tile->pad_top > 0 || last > tile->input_height;
}

static void share_out(struct lines *all)
{
    const struct mla_command *tile = all->tile;
    const int32_t line = line_of(tile), copied = reach(tile) * copied_bytes(tile);
    int8_t *scratch = tile->scratch;
    all->most_planes = tile->kernel_height * ((line + tile->part - 1) / tile->part);
    all->zeros = mla_room(&scratch, line);
    if (tile->input_zero != 0 && sees_border(tile)) {
        memset(all->zeros, tile->input_zero, (size_t)line);
    }
    for (int32_t half = 0; half < 2; half++) {
        all->sums[half] = (int32_t *)(void *)mla_room(&scratch, 4 * all->most_planes * tile->pixels * tile->columns);
    }
    if (are_copied(tile)) {
        all->copies = mla_room(&scratch, copied);
        memset(all->copies, tile->input_zero, (size_t)copied);
    }
}

/* True for a single pixel of a single line inside the input, summed in one product: a dense layer. */
static int32_t is_pixel(const struct mla_command *tile)
{
    const int32_t pads = tile->pad_top | tile->pad_left | tile->pad_right;
    return tile->output_height == 1 && tile->output_width == 1 && tile->kernel_height == 1 && pads == 0 &&
           tile->part >= line_of(tile);
}

/* Compute `columns` at a time: the core finishes some while the array works on the next. */
static int32_t compute_pixel(const struct mla_command *tile)
{
    int32_t *sums = tile->scratch, error = 0;
    struct mla_product product = {.a = tile->input, .b = tile->weights, .rows = 1, .depth = line_of(tile)};
    struct mla_results before;
    before.sums = sums;
    before.channels = tile->channels;
    before.tile = tile;
    before.step = before.count = before.plane = before.stride = 0;
    before.turn = before.pixels = before.planes = 1;
    before.unit = mla_output_bytes(tile);
    before.more = tile->more;
    before.to = tile->output;
    for (int32_t column = 0; column < tile->output_channels && error == 0; column += tile->columns) {
        const int32_t count = mla_smaller(tile->columns, tile->output_channels - column);
        product.columns = count;
        product.target = sums + (column / tile->columns & 1) * tile->columns;
        mla_execute_mm(&product);
        product.b += tile->columns * product.depth;
        if (before.count > 0) {
            mla_requantise(&before);
            mla_pass(&before, before.count);
        }
        before.sums = product.target;
        before.count = count;
        error = mla_finish();
    }
    mla_requantise(&before);
    return error;
}

/* True if all pixels are contiguous in input and output, and each depends on a single input pixel. */
static int32_t is_flat(const struct mla_command *tile)
{
    const int32_t taps = tile->kernel_height * tile->kernel_width, pads = tile->pad_top | tile->pad_left | tile->pad_right;
    return taps == 1 && pads == 0 && tile->stride_y == 1 && tile->stride_x == 1 && !sees_border(tile) &&
           tile->input_width == tile->output_width && tile->input_row_stride == tile->input_width * tile->input_pixel_stride &&
           tile->output_row_stride == tile->output_width * tile->output_pixel_stride &&
           (tile->more == 0 || tile->more_row_stride == tile->output_width * tile->more_pixel_stride);
}

static int32_t compute_lines(const struct mla_command *tile)
{
    struct lines all = {.tile = tile};
    share_out(&all);
    for (int32_t y = 0; y < tile->output_height && all.error == 0; y++) {
        if (all.copies != 0) {
            copy_lines(&all, y);
        }
        compute_row(&all, y);
    }
    const int32_t error = mla_finish();
    finish(&all, all.before.count);
    return all.error != 0 ? all.error : error;
}

int32_t mla_lines(const struct mla_command *tile)
{
    if (is_pixel(tile)) {
        return compute_pixel(tile);
    }
    if (!is_flat(tile)) {
        return compute_lines(tile);
    }
    struct mla_command flat = *tile; /* a single long row */
    flat.output_width *= flat.output_height;
    flat.output_height = 1;
    return compute_lines(&flat);
}
