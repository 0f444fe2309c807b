/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Addresses of the operands and the result of a MAC array's command, and their overlaps: hardware manual, sections 3.1
 * to 3.4. */
#include <stdlib.h>
#include <string.h>

#include "mac_array.h"
#include "need.h"

enum { ADDITION_BYTES = 32, ACCUMULATOR_BYTES = 4 };

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static bool has_filter(const struct command *command)
{
    return command->kind == CONVOLUTION || command->kind == DEPTHWISE;
}

uint64_t mac_array_depth(const struct command *command)
{
    const uint64_t taps = (uint64_t)command->kernel_height * command->kernel_width;
    return command->kind == CONVOLUTION ? taps * command->input_channels : taps;
}

uint64_t mac_array_rows(const struct command *command)
{
    const bool pairs = (command->flags & NIBBLES) != 0 && (command->flags & PIXELS) != 0;
    return pairs ? ceil_div(mac_array_depth(command), 2) * 2 : mac_array_depth(command);
}

uint32_t mac_array_columns(const struct command *command, uint32_t block, uint32_t left)
{
    uint32_t columns = block;
    if (command->kind == CONVOLUTION && (command->flags & (PIXELS | SECOND)) == 0) {
        const uint32_t most = (command->flags & NIBBLES) != 0 ? 1 : 2;
        for (uint32_t halvings = 0; halvings < most && columns % 2 == 0 && left <= columns / 2; halvings++) {
            columns /= 2;
        }
    }
    return columns;
}

uint64_t mac_array_weights(const struct command *command, uint32_t block)
{
    const uint32_t left = command->output_channels % block;
    const uint32_t last = left > 0 ? mac_array_columns(command, block, left) : 0;
    return (command->output_channels - left + last) * mac_array_rows(command);
}

uint64_t mac_array_weight_bytes(const struct command *command, uint32_t block)
{
    return ceil_div(mac_array_weights(command, block), (command->flags & NIBBLES) != 0 ? 2 : 1);
}

/* A tensor of contiguous bytes. */
static struct tensor flat(const char *what, uint32_t base, uint64_t bytes)
{
    return (struct tensor){what, base, 1, 1, 0, 0, bytes, false};
}

static struct tensor input_of(const struct command *command)
{
    if (command->kind == ADD) {
        return (struct tensor){"its input", command->input, command->output_height, command->output_width,
                               command->input_row_stride, command->input_pixel_stride, command->output_channels, true};
    }
    return (struct tensor){"its input", command->input, command->input_height, command->input_width,
                           command->input_row_stride, command->input_pixel_stride, command->input_channels, false};
}

/* The second factor of a product: rows with a byte per output channel, or with PIXELS a row per output channel. */
static struct tensor second_factor_of(const struct command *command)
{
    const uint32_t depth = (uint32_t)mac_array_depth(command), channels = command->output_channels;
    const bool along_pixels = (command->flags & PIXELS) != 0;
    return (struct tensor){"its second input", command->weights, along_pixels ? channels : depth, 1,
                           command->second_row_stride, 0, along_pixels ? depth : channels, false};
}

static struct tensor second_of(const struct command *command)
{
    if (command->kind != ADD) {
        return second_factor_of(command);
    }
    return (struct tensor){"its second input", command->weights, command->output_height, command->output_width,
                           command->second_row_stride, command->second_pixel_stride, command->output_channels, true};
}

static struct tensor extra_of(const struct command *command)
{
    const bool residual = (command->flags & RESIDUAL) != 0;
    const uint64_t bytes = (residual ? 1U : ACCUMULATOR_BYTES) * (uint64_t)command->output_channels;
    return (struct tensor){residual ? "what it adds" : "the accumulators it starts from", command->extra,
                           command->output_height, command->output_width, command->extra_row_stride,
                           command->extra_pixel_stride, bytes, true};
}

struct tensor mac_array_output(const struct command *command)
{
    const uint64_t bytes = ((command->flags & RAW) != 0 ? ACCUMULATOR_BYTES : 1U) * (uint64_t)command->output_channels;
    return (struct tensor){"its output", command->output, command->output_height, command->output_width,
                           command->output_row_stride, command->output_pixel_stride, bytes, false};
}

static uint32_t constants_of(const struct command *command, uint32_t block, struct tensor *list)
{
    uint32_t count = 0;
    if (has_filter(command)) {
        const uint64_t channels = ceil_div(command->output_channels, block) * block;
        if ((command->flags & SECOND) == 0) {
            list[count++] = flat("its weights", command->weights, mac_array_weight_bytes(command, block));
        }
        list[count++] = flat("its parameters", command->parameters, channels * MAC_ARRAY_PARAMETER_BYTES);
    } else if (command->kind == ADD) {
        list[count++] = flat("its parameters", command->parameters, ADDITION_BYTES);
    }
    if ((command->flags & RESIDUAL) != 0) {
        list[count++] = flat("its residual parameters", command->residual_parameters, ADDITION_BYTES);
    }
    return count;
}

uint32_t mac_array_operands(const struct command *command, uint32_t block, struct tensor *list)
{
    uint32_t count = 0;
    list[count++] = input_of(command);
    if (command->kind == ADD || (command->flags & SECOND) != 0) {
        list[count++] = second_of(command);
    }
    if ((command->flags & (ACCUMULATE | RESIDUAL)) != 0) {
        list[count++] = extra_of(command);
    }
    return count + constants_of(command, block, list + count);
}

/* ---- addresses and overlaps ---- */

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct range mac_array_range(const struct tensor *tensor)
{
    const int64_t rows = (int64_t)(tensor->height - 1) * tensor->row_stride;
    const int64_t pixels = (int64_t)(tensor->width - 1) * tensor->pixel_stride;
    const int64_t low = tensor->base + smaller(rows, 0) + smaller(pixels, 0);
    return (struct range){low, tensor->base - smaller(-rows, 0) - smaller(-pixels, 0) + (int64_t)tensor->pixel_bytes};
}

/* Whether two tensors have the same address and layout. The stride of a single row or pixel does not matter. */
static bool lies_exactly_on(const struct tensor *one, const struct tensor *other)
{
    return one->base == other->base && one->pixel_bytes == other->pixel_bytes &&
           (one->height == 1 || one->row_stride == other->row_stride) &&
           (one->width == 1 || one->pixel_stride == other->pixel_stride);
}

static uint8_t *pixel_in(const struct tensor *tensor, uint8_t *map, uint32_t y, uint32_t x)
{
    return map + tensor->base + (int64_t)y * tensor->row_stride + (int64_t)x * tensor->pixel_stride;
}

/* Mark the tensor's bytes. True if a byte was marked before. */
static bool mark(const struct tensor *tensor, uint8_t *map)
{
    bool met = false;
    for (uint32_t y = 0; y < tensor->height; y++) {
        for (uint32_t x = 0; x < tensor->width; x++) {
            uint8_t *pixel = pixel_in(tensor, map, y, x);
            met = met || memchr(pixel, 1, tensor->pixel_bytes) != NULL;
            memset(pixel, 1, tensor->pixel_bytes);
        }
    }
    return met;
}

static bool touches(const struct tensor *tensor, uint8_t *map)
{
    for (uint32_t y = 0; y < tensor->height; y++) {
        for (uint32_t x = 0; x < tensor->width; x++) {
            if (memchr(pixel_in(tensor, map, y, x), 1, tensor->pixel_bytes) != NULL) {
                return true;
            }
        }
    }
    return false;
}

static uint64_t magnitude(int32_t stride)
{
    return (uint64_t)(stride < 0 ? -(int64_t)stride : stride);
}

/* Whether rows and pixels are apart, as in nearly all tensors. If so, no two pixels overlap. */
static bool is_plain(const struct tensor *tensor)
{
    const uint64_t pixel = magnitude(tensor->pixel_stride), row = magnitude(tensor->row_stride);
    return (tensor->width == 1 || pixel >= tensor->pixel_bytes) &&
           (tensor->height == 1 || row >= (tensor->width - 1) * pixel + tensor->pixel_bytes);
}

static bool may_meet(const struct tensor *one, const struct tensor *other)
{
    const struct range a = mac_array_range(one), b = mac_array_range(other);
    return a.from < b.to && b.from < a.to;
}

static const char *look(const struct tensor *output, const struct tensor *operands, uint32_t count, uint8_t *map)
{
    if (mark(output, map)) {
        return output->what;
    }
    for (uint32_t i = 0; i < count; i++) {
        const bool in_place = operands[i].elementwise && lies_exactly_on(output, &operands[i]);
        if (!in_place && may_meet(output, &operands[i]) && touches(&operands[i], map)) {
            return operands[i].what;
        }
    }
    return NULL;
}

const char *mac_array_overlaps(const struct tensor *output, const struct tensor *operands, uint32_t count,
                               uint32_t sram_bytes)
{
    bool look_closer = !is_plain(output);
    for (uint32_t i = 0; i < count; i++) {
        look_closer = look_closer || may_meet(output, &operands[i]);
    }
    if (!look_closer) {
        return NULL;
    }
    uint8_t *map = needed(calloc(sram_bytes, 1));
    const char *what = look(output, operands, count, map);
    free(map);
    return what;
}
