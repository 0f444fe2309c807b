/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Results of the MAC array: hardware manual, sections 3.3 and 3.4. */
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "mac_array.h"

enum { BIGGEST_SHIFT = 31, ADD_LEFT_SHIFT = 20 };

struct addition {
    int32_t zero1, multiplier1, shift1, zero2, multiplier2, shift2, multiplier, shift;
};

/* A block of channels: weights, `apart` bytes from product to product, and parameters of requantisation. */
struct channels {
    uint32_t first, count, block, apart;
    const int8_t *weights;
    const uint8_t *biases, *multipliers;
    const int8_t *shifts;
};

uint32_t mac_array_block(const struct command *command, uint32_t width, uint32_t lanes)
{
    return command->kind == CONVOLUTION && (command->flags & PIXELS) != 0 ? lanes : width;
}

/* ---- arithmetic ---- */

static int32_t word(const uint8_t *at)
{
    int32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static int32_t doubling_high_multiply(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    const int64_t product = (int64_t)a * b;
    const int64_t nudge = product >= 0 ? 1 << 30 : 1 - (1 << 30);
    return (int32_t)((product + nudge) / ((int64_t)1 << 31));
}

static int32_t rounding_divide(int32_t x, int exponent)
{
    const int64_t mask = ((int64_t)1 << exponent) - 1;
    const int64_t remainder = x & mask;
    const int64_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (int32_t)(((int64_t)x >> exponent) + (remainder > threshold ? 1 : 0));
}

static int32_t requantize(int32_t x, int32_t multiplier, int32_t shift)
{
    const int32_t bounded = shift > BIGGEST_SHIFT ? BIGGEST_SHIFT : shift < -BIGGEST_SHIFT ? -BIGGEST_SHIFT : shift;
    const int32_t shifted = bounded > 0 ? (int32_t)((uint32_t)x << bounded) : x;
    return rounding_divide(doubling_high_multiply(shifted, multiplier), bounded < 0 ? -bounded : 0);
}

static int8_t clamp(int64_t value, int8_t low, int8_t high)
{
    const int64_t raised = value < low ? low : value;
    return (int8_t)(raised > high ? high : raised);
}

static int32_t wrap(uint32_t sum, uint32_t bits)
{
    return (int32_t)(sum << (32 - bits)) >> (32 - bits);
}

static int32_t rescaled(int32_t value, int32_t zero, int32_t multiplier, int32_t shift)
{
    const uint32_t distance = (uint32_t)value - (uint32_t)zero;
    return requantize((int32_t)(distance << ADD_LEFT_SHIFT), multiplier, shift);
}

static int32_t sum_of(const struct addition *addition, int8_t a, int8_t b, bool product)
{
    const uint32_t first = (uint32_t)rescaled(a, addition->zero1, addition->multiplier1, addition->shift1);
    const int32_t factor = product ? (int32_t)first : addition->multiplier2;
    const uint32_t second = (uint32_t)rescaled(b, addition->zero2, factor, addition->shift2);
    return requantize((int32_t)((product ? 0 : first) + second), addition->multiplier, addition->shift);
}

/* ---- places ---- */

static int64_t input_at(const struct command *command, int64_t y, int64_t x)
{
    return command->input + y * command->input_row_stride + x * command->input_pixel_stride;
}

static size_t result_bytes(const struct command *command)
{
    return (command->flags & RAW) != 0 ? sizeof(int32_t) : 1;
}

/* The place of a pixel's results. Results are copied to the output after the last pixel, because the output may lie on
 * operands. */
static uint8_t *result_at(const struct command *command, uint8_t *results, uint32_t y, uint32_t x)
{
    return results + ((size_t)y * command->output_width + x) * command->output_channels * result_bytes(command);
}

static int64_t extra_at(const struct command *command, int64_t y, int64_t x)
{
    return command->extra + y * command->extra_row_stride + x * command->extra_pixel_stride;
}

/* The input pixel under a tap of the kernel, or a null pointer outside the input. */
static const int8_t *under(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint32_t ky,
                           uint32_t kx)
{
    const int64_t row = (int64_t)y * command->stride_y + (int64_t)ky * command->dilation_y - command->pad_top;
    const int64_t column = (int64_t)x * command->stride_x + (int64_t)kx * command->dilation_x - command->pad_left;
    if (row < 0 || row >= command->input_height || column < 0 || column >= command->input_width) {
        return NULL;
    }
    return (const int8_t *)sram + input_at(command, row, column);
}

/* ---- convolution and depthwise ---- */

static void gather(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, int8_t *window)
{
    for (uint32_t ky = 0; ky < command->kernel_height; ky++) {
        for (uint32_t kx = 0; kx < command->kernel_width; kx++) {
            const int8_t *pixel = under(command, sram, y, x, ky, kx);
            if (pixel != NULL) {
                memcpy(window, pixel, command->input_channels);
            } else {
                memset(window, command->input_zero, command->input_channels);
            }
            window += command->input_channels;
        }
    }
}

/* Pack the second operand like weights, and add up each of its channels. */
static void pack_second(const struct command *command, const uint8_t *sram, uint32_t block,
                        struct mac_array_scratch scratch)
{
    const size_t depth = mac_array_depth(command);
    const bool along_pixels = (command->flags & PIXELS) != 0;
    const int64_t stride = command->second_row_stride;
    memset(scratch.weights, 0, mac_array_weights(command, block));
    for (uint32_t c = 0; c < command->output_channels; c++) {
        int8_t *column = scratch.weights + c / block * block * depth + c % block;
        scratch.totals[c] = 0;
        for (size_t k = 0; k < depth; k++) {
            const int64_t at = command->weights + (along_pixels ? c * stride + (int64_t)k : (int64_t)k * stride + c);
            column[k * block] = (int8_t)sram[at];
            scratch.totals[c] += (uint32_t)(int32_t)column[k * block];
        }
    }
}

static int8_t nibble(uint32_t byte, bool high)
{
    return (int8_t)((int8_t)(byte << (high ? 0 : 4)) >> 4);
}

/* Unpack weights of 4 bits. */
static void unpack(const struct command *command, const uint8_t *sram, uint32_t block, int8_t *weights)
{
    const uint64_t count = mac_array_weights(command, block);
    for (uint64_t i = 0; i < count; i++) {
        weights[i] = nibble(sram[command->weights + i / 2], i % 2 != 0);
    }
}

static struct channels channels_of(const struct command *command, const uint8_t *sram, const int8_t *weights,
                                   uint32_t first, uint32_t block, size_t rows)
{
    const uint8_t *parameters = sram + command->parameters + (size_t)first * MAC_ARRAY_PARAMETER_BYTES;
    const uint32_t left = command->output_channels - first;
    return (struct channels){first,
                             left < block ? left : block,
                             block,
                             mac_array_columns(command, block, left),
                             weights + (size_t)first * rows,
                             parameters,
                             parameters + (size_t)block * 4,
                             (const int8_t *)parameters + (size_t)block * 8};
}

static void start_sums(const struct command *command, const uint8_t *sram, const struct channels *channels,
                       int64_t extra, uint32_t *sums)
{
    const bool accumulate = (command->flags & ACCUMULATE) != 0;
    memset(sums, 0, channels->block * sizeof *sums);
    memcpy(sums, accumulate ? sram + extra + (size_t)channels->first * 4 : channels->biases,
           channels->count * sizeof *sums);
}

static void multiply(const struct channels *channels, const int8_t *window, size_t depth, uint32_t *sums)
{
    const int8_t *weights = channels->weights;
    for (size_t k = 0; k < depth; k++, weights += channels->apart) {
        const int32_t value = window[k];
        for (uint32_t c = 0; c < channels->apart; c++) {
            sums[c] += (uint32_t)(value * weights[c]);
        }
    }
}

static void multiply_16(const int8_t *weights, const int8_t *window, size_t depth, uint32_t *sums)
{
    int32_t sum[16] = {0};
    for (size_t k = 0; k < depth; k++, weights += 16) {
        const int32_t value = window[k];
        for (int c = 0; c < 16; c++) {
            sum[c] = (int32_t)((uint32_t)sum[c] + (uint32_t)(value * weights[c]));
        }
    }
    for (int c = 0; c < 16; c++) {
        sums[c] += (uint32_t)sum[c];
    }
}

static int8_t output_stage(const struct command *command, const struct channels *channels, uint32_t c, int32_t sum)
{
    const int32_t scaled = requantize(sum, word(channels->multipliers + (size_t)c * 4), channels->shifts[c]);
    return clamp((int64_t)scaled + command->output_zero, command->clamp_min, command->clamp_max);
}

static int8_t with_residual(const struct command *command, const uint8_t *sram, int8_t value, int64_t extra)
{
    struct addition addition;
    memcpy(&addition, sram + command->residual_parameters, sizeof addition);
    const int64_t sum = (int64_t)sum_of(&addition, value, (int8_t)sram[extra], false) + command->residual_zero;
    return clamp(sum, command->residual_min, command->residual_max);
}

/* Turn the sums of a block of channels of one pixel into output. */
static void finish_sums(const struct command *command, const uint8_t *sram, const struct channels *channels,
                        int64_t extra, const uint32_t *sums, uint32_t bits, uint8_t *result)
{
    for (uint32_t c = 0; c < channels->count; c++) {
        const int32_t sum = wrap(sums[c], bits);
        const uint32_t channel = channels->first + c;
        if ((command->flags & RAW) != 0) {
            memcpy(result + (size_t)channel * 4, &sum, sizeof sum);
            continue;
        }
        int8_t value = output_stage(command, channels, c, sum);
        if ((command->flags & RESIDUAL) != 0) {
            value = with_residual(command, sram, value, extra + channel);
        }
        result[channel] = (uint8_t)value;
    }
}

/* Correct sums for zero points: the array multiplies a * b, the result is the sum of (a - input zero) * (b - second
 * zero). */
static void without_zeros(const struct command *command, const struct channels *channels,
                          struct mac_array_scratch scratch, size_t depth, uint32_t *sums)
{
    const uint32_t input_zero = (uint32_t)(int32_t)command->input_zero;
    const uint32_t second_zero = (uint32_t)(int32_t)command->second_zero;
    uint32_t of_window = 0;
    for (size_t k = 0; k < depth; k++) {
        of_window += (uint32_t)(int32_t)scratch.window[k] - input_zero;
    }
    for (uint32_t c = 0; c < channels->count; c++) {
        sums[c] -= second_zero * of_window + input_zero * scratch.totals[channels->first + c];
    }
}

/* The weights, or what takes their place, as a byte each. */
static const int8_t *weights_of(const struct command *command, const uint8_t *sram, struct mac_array_scratch scratch)
{
    return scratch.weights != NULL ? scratch.weights : (const int8_t *)sram + command->weights;
}

static void convolve_pixel(const struct command *command, const uint8_t *sram, int64_t extra, uint32_t block,
                           uint32_t bits, struct mac_array_scratch scratch, uint8_t *result)
{
    const size_t depth = mac_array_depth(command);
    const int8_t *weights = weights_of(command, sram, scratch);
    const int8_t *window = scratch.window;
    uint32_t sums[MAC_ARRAY_BIGGEST_BLOCK];
    for (uint32_t first = 0; first < command->output_channels; first += block) {
        const struct channels channels = channels_of(command, sram, weights, first, block, mac_array_rows(command));
        start_sums(command, sram, &channels, extra, sums);
        if (scratch.totals != NULL) {
            without_zeros(command, &channels, scratch, depth, sums);
        }
        if (channels.apart == 16) {
            multiply_16(channels.weights, window, depth, sums);
        } else {
            multiply(&channels, window, depth, sums);
        }
        finish_sums(command, sram, &channels, extra, sums, bits, result);
    }
}

static void multiply_taps(const struct command *command, const uint8_t *sram, const struct channels *channels,
                          uint32_t y, uint32_t x, uint32_t *sums)
{
    const int8_t *weights = channels->weights;
    for (uint32_t ky = 0; ky < command->kernel_height; ky++) {
        for (uint32_t kx = 0; kx < command->kernel_width; kx++, weights += channels->apart) {
            const int8_t *pixel = under(command, sram, y, x, ky, kx);
            for (uint32_t c = 0; c < channels->count; c++) {
                const int32_t value = pixel != NULL ? pixel[channels->first + c] : command->input_zero;
                sums[c] += (uint32_t)(value * weights[c]);
            }
        }
    }
}

static void depthwise_pixel(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint32_t block,
                            uint32_t bits, struct mac_array_scratch scratch, uint8_t *result)
{
    const size_t taps = (size_t)command->kernel_height * command->kernel_width;
    uint32_t sums[MAC_ARRAY_BIGGEST_BLOCK];
    for (uint32_t first = 0; first < command->output_channels; first += block) {
        const struct channels channels =
            channels_of(command, sram, weights_of(command, sram, scratch), first, block, taps);
        start_sums(command, sram, &channels, 0, sums);
        multiply_taps(command, sram, &channels, y, x, sums);
        finish_sums(command, sram, &channels, extra_at(command, y, x), sums, bits, result);
    }
}

/* ---- add and pools ---- */

static void add_pixel(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint8_t *result)
{
    struct addition addition;
    memcpy(&addition, sram + command->parameters, sizeof addition);
    const int64_t second =
        command->weights + (int64_t)y * command->second_row_stride + (int64_t)x * command->second_pixel_stride;
    const int64_t first = input_at(command, y, x);
    const bool product = (command->flags & PRODUCT) != 0;
    for (uint32_t c = 0; c < command->output_channels; c++) {
        const int32_t sum = sum_of(&addition, (int8_t)sram[first + c], (int8_t)sram[second + c], product);
        result[c] = (uint8_t)clamp((int64_t)sum + command->output_zero, command->clamp_min, command->clamp_max);
    }
}

/* Sum, number and maximum of one channel's inputs under the kernel. */
struct pooled {
    int32_t sum, count, greatest;
};

static struct pooled pool(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint32_t channel)
{
    struct pooled pooled = {0, 0, INT8_MIN};
    for (uint32_t ky = 0; ky < command->kernel_height; ky++) {
        for (uint32_t kx = 0; kx < command->kernel_width; kx++) {
            const int8_t *pixel = under(command, sram, y, x, ky, kx);
            if (pixel != NULL) {
                pooled.sum += pixel[channel];
                pooled.count++;
                pooled.greatest = pixel[channel] > pooled.greatest ? pixel[channel] : pooled.greatest;
            }
        }
    }
    return pooled;
}

static int32_t average(struct pooled pooled)
{
    if (pooled.count == 0) {
        return 0;
    }
    const int32_t half = pooled.count / 2;
    return (pooled.sum > 0 ? pooled.sum + half : pooled.sum - half) / pooled.count;
}

static void pool_pixel(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint8_t *result)
{
    for (uint32_t c = 0; c < command->output_channels; c++) {
        const struct pooled pooled = pool(command, sram, y, x, c);
        const int32_t value = command->kind == MAXIMUM_POOL ? pooled.greatest : average(pooled);
        result[c] = (uint8_t)clamp(value, command->clamp_min, command->clamp_max);
    }
}

static void compute_pixel(const struct command *command, const uint8_t *sram, uint32_t y, uint32_t x, uint32_t block,
                          uint32_t bits, struct mac_array_scratch scratch)
{
    uint8_t *result = result_at(command, scratch.results, y, x);
    switch (command->kind) {
    case CONVOLUTION:
        gather(command, sram, y, x, scratch.window);
        convolve_pixel(command, sram, extra_at(command, y, x), block, bits, scratch, result);
        break;
    case DEPTHWISE:
        depthwise_pixel(command, sram, y, x, block, bits, scratch, result);
        break;
    case ADD:
        add_pixel(command, sram, y, x, result);
        break;
    default:
        pool_pixel(command, sram, y, x, result);
    }
}

static void put_in_place(const struct command *command, uint8_t *sram, uint8_t *results)
{
    for (uint32_t y = 0; y < command->output_height; y++) {
        for (uint32_t x = 0; x < command->output_width; x++) {
            const int64_t output =
                command->output + (int64_t)y * command->output_row_stride + (int64_t)x * command->output_pixel_stride;
            memcpy(sram + output, result_at(command, results, y, x), command->output_channels * result_bytes(command));
        }
    }
}

void mac_array_compute(const struct command *command, uint8_t *sram, uint32_t block, uint32_t bits,
                       struct mac_array_scratch scratch)
{
    if (scratch.totals != NULL) {
        pack_second(command, sram, block, scratch);
    } else if (scratch.weights != NULL) {
        unpack(command, sram, block, scratch.weights);
    }
    for (uint32_t y = 0; y < command->output_height; y++) {
        for (uint32_t x = 0; x < command->output_width; x++) {
            compute_pixel(command, sram, y, x, block, bits, scratch);
        }
    }
    put_in_place(command, sram, scratch.results);
}

size_t mac_array_window_bytes(const struct command *command)
{
    const size_t taps = (size_t)command->kernel_height * command->kernel_width;
    return command->kind == CONVOLUTION ? taps * command->input_channels : 1;
}

size_t mac_array_result_bytes(const struct command *command)
{
    return (size_t)command->output_height * command->output_width * command->output_channels * result_bytes(command);
}
