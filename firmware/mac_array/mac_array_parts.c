/* SPDX-License-Identifier: Apache-2.0 */
/* See mac_array_parts.h. Computes one output row at a time, which keeps the scratch memory small. */
#include "mac_array_parts.h"

#include "mac_array.h"
#include "mac_array_arithmetic.h"

enum { WIDTH = 16, LANES = 4 }; /* output channels in a block of weights; LANES with MAC_ARRAY_PIXELS */
enum { WEIGHT_ALIGNMENT = 16 };

static int32_t round_up(int32_t value, int32_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Fields common to all commands of a layer. */
static struct mac_array_command command_of(const int32_t *layer)
{
    return (struct mac_array_command){
        .kind = MAC_ARRAY_CONVOLUTION,
        .flags = (uint8_t)(MAC_ARRAY_RAW | layer[FLAGS]),
        .input_width = (uint16_t)layer[INPUT_WIDTH],
        .input_row_stride = layer[INPUT_ROW_STRIDE],
        .input_pixel_stride = layer[INPUT_PIXEL_STRIDE],
        .output_height = 1,
        .output_width = (uint16_t)layer[OUTPUT_WIDTH],
        .output_pixel_stride = layer[OUTPUT_CHANNELS] * (int32_t)sizeof(int32_t),
        .output_channels = (uint16_t)layer[OUTPUT_CHANNELS],
        .kernel_height = (uint8_t)layer[KERNEL_HEIGHT],
        .kernel_width = (uint8_t)layer[KERNEL_WIDTH],
        .stride_y = (uint8_t)layer[STRIDE_Y],
        .stride_x = (uint8_t)layer[STRIDE_X],
        .dilation_y = (uint8_t)layer[DILATION_Y],
        .dilation_x = (uint8_t)layer[DILATION_X],
        .pad_left = (uint8_t)layer[PAD_LEFT],
        .input_zero = (int8_t)layer[INPUT_ZERO],
    };
}

/* Bytes from the weights of one part to the weights of the next. */
static int32_t weights_apart(const int32_t *layer)
{
    const int32_t block = (layer[FLAGS] & MAC_ARRAY_PIXELS) != 0 ? LANES : WIDTH;
    const int32_t products = layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH] * layer[PART_CHANNELS];
    const int32_t full = layer[OUTPUT_CHANNELS] / block * block, left = layer[OUTPUT_CHANNELS] - full;
    const int32_t last = left == 0 ? 0 : block == WIDTH ? mac_array_columns(left) : block;
    return round_up((full + last) * products, WEIGHT_ALIGNMENT);
}

static void add_to(int32_t *sums, const int32_t *more, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        sums[i] = wrapping_add(sums[i], more[i]);
    }
}

/* Sum one output row over all input channels, without the biases. Overwrites the second half of the scratch memory. */
static int32_t sum_row(struct mac_array_command *command, const int8_t *weights, const int32_t *layer, int32_t *sums)
{
    const int8_t *input = command->input;
    const int32_t count = layer[OUTPUT_WIDTH] * layer[OUTPUT_CHANNELS];
    const int32_t apart = weights_apart(layer);
    for (int32_t part = 0; part < layer[PARTS]; part++) {
        const int32_t done = part * layer[PART_CHANNELS];
        int32_t *target = part == 0 ? sums : sums + count;
        command->input = input + done;
        command->input_channels = (uint16_t)smaller(layer[PART_CHANNELS], layer[INPUT_CHANNELS] - done);
        command->weights = weights + part * apart;
        command->output = target;
        const int32_t error = mac_array_run_one(command);
        if (error != 0) {
            return error;
        }
        if (part != 0) {
            add_to(sums, target, count);
        }
    }
    return 0;
}

struct limits {
    int32_t zero, low, high;
};

static void requantize_pixel(const int32_t *sums, const int32_t *channel, int32_t count, struct limits limits,
                             int8_t *output)
{
    for (int32_t c = 0; c < count; c++, channel += CHANNEL_WORDS) {
        const int32_t sum = wrapping_add(sums[c], channel[BIAS]);
        const int64_t scaled = requantize(sum, channel[MULTIPLIER], channel[SHIFT]);
        output[c] = (int8_t)clamp(scaled + limits.zero, limits.low, limits.high);
    }
}

static void requantize_row(const int32_t *sums, const int32_t *channels, const int32_t *layer, int8_t *output)
{
    const struct limits limits = {layer[OUTPUT_ZERO], layer[CLAMP_MIN], layer[CLAMP_MAX]};
    const int32_t made = layer[OUTPUT_CHANNELS];
    for (int32_t x = 0; x < layer[OUTPUT_WIDTH]; x++) {
        requantize_pixel(sums + x * made, channels, made, limits, output + x * layer[OUTPUT_PIXEL_STRIDE]);
    }
}

int32_t mac_array_in_parts(const int8_t *input, const int8_t *weights, const uint8_t *parameters, const int32_t *channels,
                           const int32_t *layer, int32_t *scratch, int8_t *output)
{
    int32_t error = mac_array_wait(); /* for chains submitted before */
    struct mac_array_command command = command_of(layer);
    command.parameters = parameters;
    for (int32_t y = 0; y < layer[OUTPUT_HEIGHT] && error == 0; y++) {
        const int32_t first = y * layer[STRIDE_Y] - layer[PAD_TOP];
        const int32_t skipped = first > 0 ? first : 0;
        command.input = input + skipped * layer[INPUT_ROW_STRIDE];
        command.input_height = (uint16_t)(layer[INPUT_HEIGHT] - skipped);
        command.pad_top = (uint8_t)(skipped - first);
        error = sum_row(&command, weights, layer, scratch);
        requantize_row(scratch, channels, layer, output + y * layer[OUTPUT_ROW_STRIDE]);
    }
    return error;
}
