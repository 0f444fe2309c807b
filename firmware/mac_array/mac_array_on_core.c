/* SPDX-License-Identifier: Apache-2.0 */
/* MAC array commands computed on the core, for boards without the array. The results are byte for byte those of the
 * hardware (boards/pe-mesh.md, sections 3.2 to 3.4), only slower.
 *
 * One difference: the hardware writes its results as a whole, the core one by one. An output may therefore overlap an
 * operand only element upon element, as in an addition in place. */
#include <stdbool.h>

#include "mac_array.h"
#include "mac_array_arithmetic.h"

enum { ERROR_UNKNOWN_KIND = 3, ERROR_FIELD = 6 };
enum { ACCUMULATOR_BITS = 29 };
enum { WIDTH = 16, LANES = 4 };                /* channels in a block of weights and parameters; LANES with PIXELS */
enum { PARAMETER_BYTES_PER_CHANNEL = 4 + 4 + 1 }; /* bias, multiplier, shift */
enum { ADDITION_LEFT_SHIFT = 20 };
enum { NIBBLE_COLUMNS = 8 };                    /* fewest columns of weights of 4 bits */

typedef struct mac_array_command command_t;

/* Position of an element in the output. */
struct element {
    int32_t y;
    int32_t x;
    int32_t channel;
};

/* Sums wrap at 29 bits. Wrapping at 32 bits and truncating at the end gives the same result. */
static int32_t cut_accumulator(uint32_t sum)
{
    return (int32_t)(sum << (32 - ACCUMULATOR_BITS)) >> (32 - ACCUMULATOR_BITS);
}

/* Addresses of elements and parameters. */

static bool has(const command_t *command, uint8_t flag)
{
    return (command->flags & flag) != 0;
}

static int32_t offset(struct element at, int32_t row_stride, int32_t pixel_stride)
{
    return at.y * row_stride + at.x * pixel_stride;
}

static int32_t block_channels(const command_t *command)
{
    return command->kind == MAC_ARRAY_CONVOLUTION && has(command, MAC_ARRAY_PIXELS) ? LANES : WIDTH;
}

/* The input pixel under kernel position (ky, kx); 0 if the position is outside the input. */
static const int8_t *input_pixel(const command_t *command, struct element at, int32_t ky, int32_t kx)
{
    const int32_t y = at.y * command->stride_y + ky * command->dilation_y - command->pad_top;
    const int32_t x = at.x * command->stride_x + kx * command->dilation_x - command->pad_left;
    if (y < 0 || y >= command->input_height || x < 0 || x >= command->input_width) {
        return 0;
    }
    return command->input + y * command->input_row_stride + x * command->input_pixel_stride;
}

struct channel_parameters {
    int32_t bias;
    int32_t multiplier;
    int32_t shift;
};

static struct channel_parameters parameters_of(const command_t *command, int32_t channel)
{
    const int32_t n = block_channels(command);
    const int32_t lane = channel % n;
    const char *block = (const char *)command->parameters + channel / n * n * PARAMETER_BYTES_PER_CHANNEL;
    const int32_t *words = (const int32_t *)(const void *)block;
    const int8_t *shifts = (const int8_t *)(words + 2 * n);
    return (struct channel_parameters){words[lane], words[n + lane], shifts[lane]};
}

/* Sums over the weights of one channel. */

/* Factors of one channel: address of all, place of the first, distance to the next, zero point; `nibbles`: two a byte. */
struct factors {
    const int8_t *all;
    int32_t first;
    int32_t apart;
    int32_t zero;
    bool nibbles;
};

static int32_t factor(struct factors by, int32_t i)
{
    const int32_t place = by.first + i * by.apart;
    if (!by.nibbles) {
        return by.all[place];
    }
    const uint32_t pair = (uint8_t)by.all[place / 2];
    return (int8_t)(place % 2 == 0 ? pair << 4 : pair) >> 4;
}

/* Weights of a product in the block of a channel. */
static int32_t columns_of(const command_t *command, int32_t channel)
{
    const int32_t n = block_channels(command);
    const int32_t columns = mac_array_columns(command->output_channels - channel / n * n);
    return n != WIDTH ? n : columns < NIBBLE_COLUMNS && has(command, MAC_ARRAY_NIBBLES) ? NIBBLE_COLUMNS : columns;
}

static struct factors factors_of(const command_t *command, int32_t channel, int32_t depth)
{
    const int32_t n = block_channels(command);
    const bool pixels = has(command, MAC_ARRAY_PIXELS), nibbles = has(command, MAC_ARRAY_NIBBLES);
    if (!has(command, MAC_ARRAY_SECOND)) {
        const int32_t rows = pixels && nibbles ? (depth + 1) / 2 * 2 : depth;
        const int32_t first = channel / n * n * rows + channel % n;
        return (struct factors){command->weights, first, columns_of(command, channel), 0, nibbles};
    }
    if (pixels) {
        return (struct factors){command->weights, channel * command->second_row_stride, 1, command->second_zero, false};
    }
    return (struct factors){command->weights, channel, command->second_row_stride, command->second_zero, false};
}

static uint32_t dot(const int8_t *values, int32_t zero, struct factors by, int32_t count)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum = wrapping_add(sum, (values[i] - zero) * (factor(by, i) - by.zero));
    }
    return (uint32_t)sum;
}

static uint32_t dot_of_padding(int32_t value, struct factors by, int32_t count)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < count; i++) {
        sum += factor(by, i);
    }
    return (uint32_t)(value * sum);
}

static const int32_t *extra_accumulator(const command_t *command, struct element at)
{
    const int32_t bytes = offset(at, command->extra_row_stride, command->extra_pixel_stride);
    return (const int32_t *)(const void *)((const char *)command->extra + bytes) + at.channel;
}

static int32_t convolution_sum(const command_t *command, struct element at, int32_t bias)
{
    const int32_t depth = command->input_channels;
    const int32_t taps = command->kernel_height * command->kernel_width;
    const int32_t zero = has(command, MAC_ARRAY_SECOND) ? command->input_zero : 0;
    struct factors by = factors_of(command, at.channel, taps * depth);
    uint32_t sum = (uint32_t)(has(command, MAC_ARRAY_ACCUMULATE) ? *extra_accumulator(command, at) : bias);
    for (int32_t tap = 0; tap < taps; tap++, by.first += depth * by.apart) {
        const int8_t *pixel = input_pixel(command, at, tap / command->kernel_width, tap % command->kernel_width);
        if (pixel != 0) {
            sum += dot(pixel, zero, by, depth);
        } else {
            sum += dot_of_padding(command->input_zero - zero, by, depth);
        }
    }
    return cut_accumulator(sum);
}

static int32_t depthwise_sum(const command_t *command, struct element at, int32_t bias)
{
    const int32_t taps = command->kernel_height * command->kernel_width;
    const int32_t first = at.channel / WIDTH * taps * WIDTH + at.channel % WIDTH;
    const struct factors by = {command->weights, first, WIDTH, 0, has(command, MAC_ARRAY_NIBBLES)};
    int32_t sum = bias;
    for (int32_t tap = 0; tap < taps; tap++) {
        const int8_t *pixel = input_pixel(command, at, tap / command->kernel_width, tap % command->kernel_width);
        sum = wrapping_add(sum, (pixel != 0 ? pixel[at.channel] : command->input_zero) * factor(by, tap));
    }
    return cut_accumulator((uint32_t)sum);
}

/* Output stage. */

static int32_t add(const struct mac_array_addition *by, int32_t a, int32_t b, bool product)
{
    const int32_t a_wide = wrapping_shift(a - by->zero1, ADDITION_LEFT_SHIFT);
    const int32_t b_wide = wrapping_shift(b - by->zero2, ADDITION_LEFT_SHIFT);
    const int32_t a_scaled = requantize(a_wide, by->multiplier1, by->shift1);
    const int32_t b_scaled = requantize(b_wide, product ? a_scaled : by->multiplier2, by->shift2);
    return requantize(product ? b_scaled : wrapping_add(a_scaled, b_scaled), by->multiplier, by->shift);
}

static int32_t add_residual(const command_t *command, struct element at, int32_t value)
{
    const int8_t *extra = (const int8_t *)command->extra;
    const int32_t other = extra[offset(at, command->extra_row_stride, command->extra_pixel_stride) + at.channel];
    const int64_t sum = (int64_t)add(command->residual_parameters, value, other, false) + command->residual_zero;
    return clamp(sum, command->residual_min, command->residual_max);
}

static int32_t finish(const command_t *command, int64_t value)
{
    return clamp(value, command->clamp_min, command->clamp_max);
}

static void put(const command_t *command, struct element at, int32_t value)
{
    char *pixel = (char *)command->output + offset(at, command->output_row_stride, command->output_pixel_stride);
    if (command->kind == MAC_ARRAY_CONVOLUTION && has(command, MAC_ARRAY_RAW)) {
        ((int32_t *)(void *)pixel)[at.channel] = value;
    } else {
        ((int8_t *)pixel)[at.channel] = (int8_t)value;
    }
}

/* The five kinds, one output element at a time. */

static int32_t multiply_accumulate(const command_t *command, struct element at)
{
    const bool convolution = command->kind == MAC_ARRAY_CONVOLUTION;
    const struct channel_parameters by = parameters_of(command, at.channel);
    const int32_t sum = convolution ? convolution_sum(command, at, by.bias) : depthwise_sum(command, at, by.bias);
    if (convolution && has(command, MAC_ARRAY_RAW)) {
        return sum;
    }
    const int64_t scaled = requantize(sum, by.multiplier, by.shift);
    const int32_t value = finish(command, scaled + command->output_zero);
    return has(command, MAC_ARRAY_RESIDUAL) ? add_residual(command, at, value) : value;
}

static int32_t addition(const command_t *command, struct element at)
{
    const int8_t *second = command->weights;
    const int32_t a = command->input[offset(at, command->input_row_stride, command->input_pixel_stride) + at.channel];
    const int32_t b = second[offset(at, command->second_row_stride, command->second_pixel_stride) + at.channel];
    const bool product = has(command, MAC_ARRAY_PRODUCT);
    return finish(command, (int64_t)add(command->parameters, a, b, product) + command->output_zero);
}

static int32_t maximum(const command_t *command, struct element at)
{
    int32_t largest = INT8_MIN;
    for (int32_t ky = 0; ky < command->kernel_height; ky++) {
        for (int32_t kx = 0; kx < command->kernel_width; kx++) {
            const int8_t *pixel = input_pixel(command, at, ky, kx);
            if (pixel != 0 && pixel[at.channel] > largest) {
                largest = pixel[at.channel];
            }
        }
    }
    return finish(command, largest);
}

static int32_t average(const command_t *command, struct element at)
{
    int32_t sum = 0;
    int32_t count = 0;
    for (int32_t ky = 0; ky < command->kernel_height; ky++) {
        for (int32_t kx = 0; kx < command->kernel_width; kx++) {
            const int8_t *pixel = input_pixel(command, at, ky, kx);
            sum += pixel != 0 ? pixel[at.channel] : 0;
            count += pixel != 0 ? 1 : 0;
        }
    }
    if (count == 0) {
        return finish(command, 0);
    }
    return finish(command, (sum >= 0 ? sum + count / 2 : sum - count / 2) / count);
}

static int32_t compute(const command_t *command, struct element at)
{
    switch (command->kind) {
    case MAC_ARRAY_ADD:
        return addition(command, at);
    case MAC_ARRAY_MAXIMUM_POOL:
        return maximum(command, at);
    case MAC_ARRAY_AVERAGE_POOL:
        return average(command, at);
    default:
        return multiply_accumulate(command, at);
    }
}

static bool kernel_is_right(const command_t *command)
{
    const bool sizes = command->input_height != 0 && command->input_width != 0 && command->input_channels != 0;
    const bool taps = command->kernel_height != 0 && command->kernel_width != 0;
    const bool steps = command->stride_y != 0 && command->stride_x != 0;
    const bool gaps = command->dilation_y != 0 && command->dilation_x != 0;
    const bool mixes = command->kind == MAC_ARRAY_CONVOLUTION;
    return sizes && taps && steps && gaps && (mixes || command->input_channels == command->output_channels);
}

static bool fields_are_right(const command_t *command)
{
    if (command->output_height == 0 || command->output_width == 0 || command->output_channels == 0) {
        return false;
    }
    const bool raw_or_accumulate = has(command, MAC_ARRAY_RAW) || has(command, MAC_ARRAY_ACCUMULATE);
    const bool mixes = command->kind == MAC_ARRAY_CONVOLUTION;
    if (mixes && has(command, MAC_ARRAY_RESIDUAL) && raw_or_accumulate) {
        return false;
    }
    return command->kind == MAC_ARRAY_ADD || kernel_is_right(command);
}

static int32_t fault_of(const command_t *command)
{
    if (command->kind < MAC_ARRAY_CONVOLUTION || command->kind > MAC_ARRAY_AVERAGE_POOL) {
        return ERROR_UNKNOWN_KIND;
    }
    return fields_are_right(command) ? 0 : ERROR_FIELD;
}

int32_t mac_array_run_one(const struct mac_array_command *command)
{
    const int32_t fault = fault_of(command);
    if (fault != 0) {
        return fault;
    }
    struct element at;
    for (at.y = 0; at.y < command->output_height; at.y++) {
        for (at.x = 0; at.x < command->output_width; at.x++) {
            for (at.channel = 0; at.channel < command->output_channels; at.channel++) {
                put(command, at, compute(command, at));
            }
        }
    }
    return 0;
}

static int32_t submitted_error;

void mac_array_submit(const struct mac_array_command *first)
{
    submitted_error = mac_array_run(first);
}

int32_t mac_array_wait(void)
{
    const int32_t error = submitted_error;
    submitted_error = 0;
    return error;
}

int32_t mac_array_run(const struct mac_array_command *first)
{
    int32_t error = 0;
    for (const command_t *command = first; command != 0 && error == 0; command = command->next) {
        error = mac_array_run_one(command);
    }
    return error;
}
