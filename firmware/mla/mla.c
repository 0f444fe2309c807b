/* Layers on the array. While it works on some pixels, the core requantises those before and gathers those behind. */
#include "mla.h"

#include <string.h>

#include "mla_library.h"

/* ---- what an array gives, as int8 ---- */

/* A pixel's sum from the next is `step` words away, a channel's from the next `turn`. */
struct results {
    const int32_t *sums, *channels, *layer;
    int32_t step, turn, count;
    int8_t *to;
};

#ifdef __ARM_FEATURE_DSP
/* A channel of a plain layer: of many layers the core has more to do here than the array. */
static void finish_plain(const struct results *all, const int32_t *sums, const int32_t *channel, int8_t *to)
{
    const int32_t right = -channel[SHIFT];
    const int32_t half = (1 << right >> 1) + (all->layer[OUTPUT_ZERO] << right);
    int32_t value, count = all->count;
    __asm__ volatile("1: ldr %[value], [%[sums]]\n"
                     "add %[sums], %[sums], %[step], lsl #2\n"
                     "add %[value], %[bias], %[value], lsl #1\n"
                     "smmulr %[value], %[value], %[multiplier]\n"
                     "add %[value], %[value], %[value], asr #31\n"
                     "add %[value], %[value], %[half]\n"
                     "asr %[value], %[value], %[right]\n"
                     "ssat %[value], #8, %[value]\n"
                     "strb %[value], [%[to]]\n"
                     "add %[to], %[to], %[stride]\n"
                     "subs %[count], %[count], #1\n"
                     "bne 1b\n"
                     : [value] "=&r"(value), [sums] "+r"(sums), [to] "+r"(to), [count] "+r"(count)
                     : [step] "r"(all->step), [stride] "r"(all->layer[OUTPUT_PIXEL_STRIDE]), [bias] "r"(2 * channel[BIAS]),
                       [multiplier] "r"(channel[MULTIPLIER]), [half] "r"(half), [right] "r"(right)
                     : "cc", "memory");
}
#endif

static void finish_channel(const struct results *all, const int32_t *sums, const int32_t *channel, int8_t *to)
{
    const struct mla_stage stage = mla_stage(channel, all->layer);
    const int32_t step = all->step, stride = all->layer[OUTPUT_PIXEL_STRIDE];
    for (const int32_t *end = sums + all->count * step; sums != end; sums += step, to += stride) {
        *to = mla_finished(*sums, stage);
    }
}

static void finish(const struct results *all)
{
    const int32_t *sums = all->sums, *channel = all->channels;
    for (int32_t c = 0; c < all->layer[OUTPUT_CHANNELS]; c++, sums += all->turn, channel += CHANNEL_WORDS) {
#ifdef __ARM_FEATURE_DSP
        if (all->layer[PLAIN]) {
            finish_plain(all, sums, channel, all->to + c);
            continue;
        }
#endif
        finish_channel(all, sums, channel, all->to + c);
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

/* Pixels that follow each other at one stride, as those of a row do. */
static void finish_run(const struct products *all, const int32_t *sums, int32_t pixel, int32_t count)
{
    const int32_t *layer = all->layer;
    const int32_t y = pixel / layer[OUTPUT_WIDTH], x = pixel % layer[OUTPUT_WIDTH];
    int8_t *to = all->output + y * layer[OUTPUT_ROW_STRIDE] + x * layer[OUTPUT_PIXEL_STRIDE];
    finish(&(struct results){sums, all->channels, layer, all->columns, 1, count, to});
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

/* The channels of a pixel, each to a plane of its own. */
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
            spread(pixel, channels, from + x, plane);
            pixel += layer[INPUT_PIXEL_STRIDE];
        }
    }
}

static void finish_row(const struct convolution *all, int32_t y, int32_t half)
{
    int8_t *row = all->output + y * all->layer[OUTPUT_ROW_STRIDE];
    if (y >= 0) {
        finish(&(struct results){all->sums[half], all->channels, all->layer, 1, all->width, all->layer[OUTPUT_WIDTH], row});
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
