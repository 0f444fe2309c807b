/* Layers on the array. While it works on some pixels, the core requantises those before and gathers those behind. */
#include "mla.h"

#include <string.h>

#include "mla_library.h"

/* ---- what an array gives, as int8 ---- */

static void finish_channel(const int32_t *sums, int32_t step, int32_t count, struct mla_stage stage, int8_t *to,
                           int32_t stride)
{
    for (const int32_t *end = sums + count * step; sums != end; sums += step, to += stride) {
        *to = mla_finished(*sums, stage);
    }
}

/* ---- products ---- */

struct products {
    const int8_t *input, *weights;
    const int32_t *channels, *layer;
    int8_t *output;
    int8_t *rows[2];
    int32_t *sums[2];
    int32_t depth, columns, pixels;
};

static void gather_line(const int8_t *line, int32_t first, const int32_t *layer, int8_t *to)
{
    const int32_t channels = layer[INPUT_CHANNELS];
    for (int32_t kx = 0; kx < layer[KERNEL_WIDTH]; kx++, to += channels) {
        const int32_t column = first + kx * layer[DILATION_X];
        if (column < 0 || column >= layer[INPUT_WIDTH]) {
            memset(to, layer[INPUT_ZERO], (size_t)channels);
        } else {
            memcpy(to, line + column * layer[INPUT_PIXEL_STRIDE], (size_t)channels);
        }
    }
}

static int32_t lies_dense(int32_t first, const int32_t *layer)
{
    return layer[DILATION_X] == 1 && layer[INPUT_PIXEL_STRIDE] == layer[INPUT_CHANNELS] && first >= 0 &&
           first + layer[KERNEL_WIDTH] <= layer[INPUT_WIDTH];
}

/* The window of an output pixel as a row of a product. */
static void gather_pixel(const struct products *all, int32_t pixel, int8_t *to)
{
    const int32_t *layer = all->layer;
    const int32_t y = pixel / layer[OUTPUT_WIDTH], x = pixel % layer[OUTPUT_WIDTH];
    const int32_t first = x * layer[STRIDE_X] - layer[PAD_LEFT], bytes = layer[KERNEL_WIDTH] * layer[INPUT_CHANNELS];
    for (int32_t ky = 0; ky < layer[KERNEL_HEIGHT]; ky++, to += bytes) {
        const int32_t row = y * layer[STRIDE_Y] + ky * layer[DILATION_Y] - layer[PAD_TOP];
        const int8_t *line = all->input + row * layer[INPUT_ROW_STRIDE];
        if (row < 0 || row >= layer[INPUT_HEIGHT]) {
            memset(to, layer[INPUT_ZERO], (size_t)bytes);
        } else if (lies_dense(first, layer)) {
            memcpy(to, line + first * layer[INPUT_PIXEL_STRIDE], (size_t)bytes);
        } else {
            gather_line(line, first, layer, to);
        }
    }
}

static int32_t count_from(const struct products *all, int32_t pixel)
{
    const int32_t left = all->pixels - pixel, most = all->layer[AT_ONCE];
    return left < most ? left : most;
}

static void gather(const struct products *all, int32_t pixel, int32_t half)
{
    const int32_t count = pixel < all->pixels && !all->layer[IN_PLACE] ? count_from(all, pixel) : 0;
    for (int32_t i = 0; i < count; i++) {
        gather_pixel(all, pixel + i, all->rows[half] + i * all->depth);
    }
}

static void start_products(const struct products *all, int32_t pixel, int32_t half)
{
    const int32_t stride = all->layer[INPUT_PIXEL_STRIDE], in_place = all->layer[IN_PLACE];
    const struct mla_product product = {
        .a = in_place ? all->input + pixel * stride : all->rows[half],
        .b = all->weights,
        .target = all->sums[half],
        .rows = count_from(all, pixel),
        .depth = all->depth,
        .columns = all->columns,
        .a_stride = in_place ? stride : all->depth,
    };
    mla_execute_mm(&product);
}

/* Pixels that follow each other at one stride, as those of a row do: channel by channel. */
static void finish_run(const struct products *all, const int32_t *sums, int32_t pixel, int32_t count)
{
    const int32_t *layer = all->layer;
    const int32_t y = pixel / layer[OUTPUT_WIDTH], x = pixel % layer[OUTPUT_WIDTH], stride = layer[OUTPUT_PIXEL_STRIDE];
    int8_t *to = all->output + y * layer[OUTPUT_ROW_STRIDE] + x * stride;
    for (int32_t c = 0; c < layer[OUTPUT_CHANNELS]; c++) {
        const struct mla_stage stage = mla_stage(all->channels + CHANNEL_WORDS * c, layer);
        finish_channel(sums + c, all->columns, count, stage, to + c, stride);
    }
}

static void finish_pixels(const struct products *all, int32_t pixel, int32_t half)
{
    const int32_t *sums = all->sums[half], width = all->layer[OUTPUT_WIDTH];
    const int32_t dense = all->layer[OUTPUT_ROW_STRIDE] == width * all->layer[OUTPUT_PIXEL_STRIDE];
    for (int32_t left = pixel < 0 ? 0 : count_from(all, pixel); left > 0;) {
        const int32_t in_row = width - pixel % width;
        const int32_t count = in_row < left && !dense ? in_row : left;
        finish_run(all, sums, pixel, count);
        sums += count * all->columns;
        pixel += count;
        left -= count;
    }
}

static int8_t *room(int8_t **scratch, int32_t bytes)
{
    int8_t *place = *scratch;
    *scratch += mla_padded(bytes, MLA_WIDTH);
    return place;
}

/* What lies behind the last product of each row meets weights of zero. */
static void clear_tails(const struct products *all, int8_t *rows)
{
    const int32_t *layer = all->layer;
    const int32_t used = layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH] * layer[INPUT_CHANNELS];
    for (int32_t i = 0; i < layer[AT_ONCE] && !layer[IN_PLACE]; i++) {
        memset(rows + i * all->depth + used, 0, (size_t)(all->depth - used));
    }
}

static void share_out(struct products *all, int8_t *scratch)
{
    const int32_t bytes = all->layer[IN_PLACE] ? 0 : all->layer[AT_ONCE] * all->depth;
    for (int32_t half = 0; half < 2; half++) {
        all->rows[half] = room(&scratch, bytes);
        all->sums[half] = (int32_t *)(void *)room(&scratch, 4 * all->layer[AT_ONCE] * all->columns);
        clear_tails(all, all->rows[half]);
    }
}

int32_t mla_products(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                     void *output)
{
    struct products all = {
        .input = input,
        .weights = weights,
        .channels = channels,
        .layer = layer,
        .output = output,
        .depth = mla_padded(layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH] * layer[INPUT_CHANNELS], MLA_WIDTH),
        .columns = mla_padded(layer[OUTPUT_CHANNELS], MLA_WIDTH),
        .pixels = layer[OUTPUT_HEIGHT] * layer[OUTPUT_WIDTH],
    };
    int32_t half = 0, before = -1, error = 0;
    share_out(&all, scratch);
    gather(&all, 0, half);
    for (int32_t pixel = 0; pixel < all.pixels && error == 0; pixel += layer[AT_ONCE]) {
        start_products(&all, pixel, half);
        finish_pixels(&all, before, 1 - half);
        gather(&all, pixel + layer[AT_ONCE], 1 - half);
        error = mla_finish();
        before = pixel;
        half = 1 - half;
    }
    finish_pixels(&all, before, 1 - half);
    return error;
}

/* ---- convolutions ---- */

struct convolution {
    struct mla_convolution call;
    const int32_t *channels, *layer;
    int8_t *output;
    int32_t *sums[2];
    int32_t width; /* of a row of sums */
};

/* The lines of the input from line `first` on, which may lie outside of it, with their borders: a plane for each
 * channel. */
static void make_planes(const struct convolution *all, const int8_t *input, int32_t first, int32_t lines, int8_t *planes)
{
    const int32_t *layer = all->layer;
    const int32_t channels = layer[INPUT_CHANNELS], plane = all->call.plane_stride;
    memset(planes, layer[INPUT_ZERO], (size_t)(plane * channels));
    for (int32_t line = 0; line < lines; line++) {
        const int32_t y = first + line;
        const int8_t *pixel = input + y * layer[INPUT_ROW_STRIDE];
        int8_t *from = planes + line * all->call.row_stride + layer[PAD_LEFT];
        for (int32_t x = 0; y >= 0 && y < layer[INPUT_HEIGHT] && x < layer[INPUT_WIDTH]; x++) {
            int8_t *to = from + x;
            for (int32_t c = 0; c < channels; c++, to += plane) {
                *to = pixel[c];
            }
            pixel += layer[INPUT_PIXEL_STRIDE];
        }
    }
}

static void finish_row(const struct convolution *all, int32_t y, int32_t half)
{
    const int32_t *layer = all->layer;
    int8_t *row = all->output + y * layer[OUTPUT_ROW_STRIDE];
    for (int32_t c = 0; y >= 0 && c < layer[OUTPUT_CHANNELS]; c++) {
        const struct mla_stage stage = mla_stage(all->channels + CHANNEL_WORDS * c, layer);
        const int32_t *sums = all->sums[half] + c * all->width;
        finish_channel(sums, 1, layer[OUTPUT_WIDTH], stage, row + c, layer[OUTPUT_PIXEL_STRIDE]);
    }
}

static void share_out_planes(struct convolution *all, int8_t *scratch, int8_t **planes)
{
    const int32_t bytes = 4 * all->width * all->layer[OUTPUT_CHANNELS];
    *planes = room(&scratch, all->call.plane_stride * all->layer[INPUT_CHANNELS]);
    all->sums[0] = (int32_t *)(void *)room(&scratch, bytes);
    all->sums[1] = (int32_t *)(void *)room(&scratch, bytes);
}

int32_t mla_convolution(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                        void *output)
{
    const int32_t width = layer[OUTPUT_WIDTH], height = layer[OUTPUT_HEIGHT], lines = layer[AT_ONCE] + layer[KERNEL_HEIGHT] - 1;
    const int32_t row_stride = mla_padded(mla_padded(width, MLA_WIDTH) + layer[KERNEL_WIDTH] - 1, MLA_WIDTH);
    struct convolution all = {
        .call = {.weights = weights, .rows = 1, .width = width, .channels = layer[OUTPUT_CHANNELS],
                 .input_channels = layer[INPUT_CHANNELS], .kernel_height = layer[KERNEL_HEIGHT],
                 .kernel_width = layer[KERNEL_WIDTH], .row_stride = row_stride, .plane_stride = row_stride * lines},
        .channels = channels,
        .layer = layer,
        .output = output,
        .width = mla_padded(width, MLA_WIDTH),
    };
    int8_t *planes;
    int32_t error = 0;
    share_out_planes(&all, scratch, &planes);
    for (int32_t y = 0; y < height && error == 0; y++) {
        const int32_t line = y % layer[AT_ONCE];
        if (line == 0) {
            make_planes(&all, input, y - layer[PAD_TOP], lines, planes);
        }
        all.call.input = planes + line * row_stride;
        all.call.target = all.sums[y % 2];
        mla_execute_conv(&all.call);
        finish_row(&all, y - 1, 1 - y % 2);
        error = mla_finish();
    }
    finish_row(&all, height - 1, 1 - height % 2);
    return error;
}
