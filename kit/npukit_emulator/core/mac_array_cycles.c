/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Cycles of a command of the MAC array: hardware manual, section 3.5. */
#include "mac_array.h"

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static bool has(const struct command *command, uint32_t flags)
{
    return (command->flags & flags) != 0;
}

static uint64_t taps_of(const struct command *command)
{
    return (uint64_t)command->kernel_height * command->kernel_width;
}

static uint64_t pixels_of(const struct command *command)
{
    return (uint64_t)command->output_height * command->output_width;
}

/* Wide accesses for weights, of which two or one take a byte. */
static uint64_t loads_of(const struct mac_array_figures *figures, const struct command *command, uint64_t weights)
{
    return ceil_div(weights, figures->port_bytes * (has(command, NIBBLES) ? 2U : 1U));
}

/* Runs of consecutive bytes in a patch, and bytes of a run. */
struct patch {
    uint64_t runs, bytes, rows;
};

static struct patch patch_of(const struct mac_array_figures *figures, const struct command *command)
{
    const bool dense = command->dilation_x == 1 && command->input_pixel_stride == command->input_channels;
    const uint64_t runs = dense ? command->kernel_height : taps_of(command);
    const uint64_t bytes = (uint64_t)(dense ? command->kernel_width : 1) * command->input_channels;
    return (struct patch){runs, bytes, runs * ceil_div(bytes, figures->width)};
}

/* Cycles of the output stage for a number of results. */
static uint64_t requantised(const struct mac_array_figures *figures, const struct command *command, uint64_t results)
{
    const uint64_t products = has(command, RESIDUAL) ? 4 : has(command, RAW) ? 0 : 1;
    return ceil_div(products * results, figures->requantisers);
}

/* Accesses that write the results of some pixels, and read what is added to them. */
static uint64_t written(const struct command *command, uint64_t pixels)
{
    const uint64_t added = has(command, ACCUMULATE) ? 4 : has(command, RESIDUAL) ? 1 : 0;
    return pixels * ((has(command, RAW) ? 4U : 1U) + added);
}

static uint64_t drain(const struct mac_array_figures *figures, uint64_t requantise, uint64_t write)
{
    return figures->drain_cycles + most(requantise, write);
}

static uint64_t parameters_of(const struct mac_array_figures *figures, uint64_t channels)
{
    return ceil_div(channels * figures->parameter_bytes_per_channel, figures->port_bytes);
}

static uint64_t across_channels(const struct mac_array_figures *figures, const struct command *command)
{
    const uint64_t all = pixels_of(command), depth = mac_array_depth(command);
    const uint64_t groups = ceil_div(all, figures->lanes), blocks = ceil_div(command->output_channels, figures->width);
    const struct patch patch = patch_of(figures, command);
    const bool second = has(command, SECOND), paired = all <= figures->lanes / 2 && !second;
    const uint64_t pixels = paired ? all : figures->lanes;
    const uint64_t sums = paired ? patch.runs * ceil_div(patch.bytes, 2) : depth;
    const uint64_t columns = blocks > 1 ? figures->width
                                        : mac_array_columns(command, figures->width, command->output_channels);
    const uint64_t weights = second   ? depth
                             : paired ? patch.runs * loads_of(figures, command, patch.bytes * columns)
                                      : loads_of(figures, command, depth * columns);
    const uint64_t write = written(command, pixels);
    const uint64_t requantise = requantised(figures, command, pixels * figures->width);
    const uint64_t parameters = parameters_of(figures, figures->width);
    const bool kept = blocks <= figures->parameter_blocks;
    const bool alone = groups == 1 && patch.rows <= figures->window_rows;
    const uint64_t half = figures->window_rows / 2;
    const uint64_t loads = alone ? 0 : patch.rows <= half ? ceil_div(pixels * patch.rows, blocks) : pixels * patch.rows;
    const uint64_t step = most(most(sums, requantise), weights + write + loads + (kept ? 0 : parameters));
    const uint64_t before = (kept ? parameters * blocks : 0) + pixels * (alone ? patch.rows : least(patch.rows, half));
    return before + groups * blocks * step + drain(figures, requantise, write);
}

static uint64_t along_pixels(const struct mac_array_figures *figures, const struct command *command)
{
    const uint64_t groups = ceil_div(pixels_of(command), figures->width), depth = mac_array_depth(command);
    const uint64_t blocks = ceil_div(command->output_channels, figures->lanes);
    const uint64_t held = has(command, SECOND) ? figures->lanes * ceil_div(depth, figures->width)
                                               : loads_of(figures, command, figures->lanes * depth);
    const bool once = depth <= (uint64_t)figures->window_rows * figures->width;
    const uint64_t write = figures->width * (has(command, ACCUMULATE | RESIDUAL) ? 2U : 1U);
    const uint64_t requantise = requantised(figures, command, (uint64_t)figures->width * figures->lanes);
    const uint64_t pixels = figures->width * patch_of(figures, command).rows;
    const uint64_t step = most(requantise, pixels + write + (once ? 0 : held));
    const uint64_t before = blocks * (parameters_of(figures, figures->lanes) + (once ? held : 0));
    return before + groups * blocks * step + figures->width + drain(figures, requantise, write);
}

static uint64_t pixel_by_pixel(const struct mac_array_figures *figures, const struct command *command, uint64_t blocks)
{
    const uint64_t taps = taps_of(command), write = written(command, 1);
    const uint64_t requantise = requantised(figures, command, figures->width);
    const uint64_t weights = loads_of(figures, command, taps * figures->width);
    const uint64_t step = most(requantise, taps + weights + write);
    return blocks * parameters_of(figures, figures->width) + pixels_of(command) * blocks * step +
           drain(figures, requantise, write);
}

static uint64_t depthwise(const struct mac_array_figures *figures, const struct command *command)
{
    const uint64_t blocks = ceil_div(command->output_channels, figures->width), taps = taps_of(command);
    const uint64_t columns = (uint64_t)(command->kernel_width - 1) * command->dilation_x + 1;
    const uint64_t vectors = command->kernel_height * columns;
    const bool tight = command->stride_y * command->stride_x > 2 && 2 * vectors > figures->window_rows;
    if (pixels_of(command) == 1 || vectors > figures->window_rows || tight) {
        return pixel_by_pixel(figures, command, blocks);
    }
    const uint64_t lanes = least(figures->lanes, command->output_height);
    const uint64_t strips = ceil_div(command->output_height, figures->lanes);
    const uint64_t loaded = least(command->stride_x, columns);
    const uint64_t column = (lanes - 1) * command->stride_y +
                            (uint64_t)(command->kernel_height - 1) * command->dilation_y + 1;
    const uint64_t write = written(command, lanes);
    const uint64_t requantise = requantised(figures, command, lanes * figures->width);
    const uint64_t weights = loads_of(figures, command, taps * figures->width);
    const uint64_t step = most(most(taps, requantise), weights + loaded * column + write);
    const uint64_t strip = (columns - loaded) * column + command->output_width * step;
    return blocks * (parameters_of(figures, figures->width) + strips * strip) + drain(figures, requantise, write);
}

static uint64_t pool(const struct mac_array_figures *figures, const struct command *command)
{
    const uint64_t blocks = ceil_div(command->output_channels, figures->width);
    const uint64_t finish = ceil_div(figures->width, figures->requantisers);
    return pixels_of(command) * blocks * most(taps_of(command) + 1, finish) + drain(figures, finish, 1);
}

static uint64_t addition(const struct mac_array_figures *figures, const struct command *command)
{
    const int32_t channels = command->output_channels;
    const bool dense = command->input_pixel_stride == channels && command->second_pixel_stride == channels &&
                       command->output_pixel_stride == channels;
    const uint64_t rows = dense ? command->output_height : pixels_of(command);
    const uint64_t bytes = dense ? (uint64_t)command->output_width * command->output_channels
                                 : command->output_channels;
    const uint64_t piece = ceil_div(3 * (uint64_t)figures->width, figures->requantisers);
    return rows * ceil_div(bytes, figures->width) * piece + drain(figures, piece, 1);
}

static uint64_t work(const struct mac_array_figures *figures, const struct command *command)
{
    switch (command->kind) {
    case CONVOLUTION:
        return has(command, PIXELS) ? along_pixels(figures, command) : across_channels(figures, command);
    case DEPTHWISE:
        return depthwise(figures, command);
    case ADD:
        return addition(figures, command);
    default:
        return pool(figures, command);
    }
}

uint64_t mac_array_cycles(const struct mac_array_figures *figures, const struct command *command, bool first)
{
    const bool constants = command->kind == ADD || has(command, RESIDUAL);
    return (first ? figures->setup_cycles : figures->chain_cycles) + constants + work(figures, command);
}
