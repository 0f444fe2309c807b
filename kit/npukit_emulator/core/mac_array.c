/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The MAC array's registers, chains and checks: hardware manual, sections 3.1 and 3.2. Uses device.h and,
 * for allocations, need.h of the emulator. */
#include "mac_array.h"

#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "need.h"

enum register_offset { DOORBELL = 0x00, STATUS = 0x04, COMPLETED = 0x08, BUSY_CYCLES = 0x0C, ERROR = 0x10,
                      ERROR_COMMAND = 0x14 };
enum { STATUS_BUSY = 1, STATUS_ERROR = 2 };
enum { ERROR_BUSY = 1, ERROR_PLACE, ERROR_KIND, ERROR_OPERAND, ERROR_ALIGNMENT, ERROR_FIELD };

struct mac_array {
    const struct device_place *place;
    struct mac_array_figures figures;
    uint32_t accumulator_bits;
    bool busy;
    struct command command;
    uint32_t address; /* address of the command */
    uint64_t since;
    uint32_t at_fault; /* error of the first command, shown when its check ends */
    uint64_t busy_cycles;
    uint32_t completed, error, error_command;
};

/* ---- figures ---- */

static bool take_figure(const struct device_place *place, const char *name, uint32_t *value)
{
    for (uint32_t i = 0; i < place->figure_count; i++) {
        if (strcmp(place->figures[i].name, name) == 0) {
            *value = (uint32_t)place->figures[i].value;
            return true;
        }
    }
    return false;
}

static bool within(uint32_t value, uint32_t low, uint32_t high)
{
    return low <= value && value <= high;
}

static const char *wrong_figure(const struct mac_array *array)
{
    const struct mac_array_figures *figures = &array->figures;
    if (!within(figures->width, 1, MAC_ARRAY_BIGGEST_BLOCK) || !within(figures->lanes, 1, MAC_ARRAY_BIGGEST_BLOCK)) {
        return "the MAC array's width and lanes must be 1 to 256";
    }
    if (!within(array->accumulator_bits, 1, 32)) {
        return "the MAC array's accumulators must have 1 to 32 bits";
    }
    if (figures->parameter_bytes_per_channel != MAC_ARRAY_PARAMETER_BYTES) {
        return "the MAC array has 9 bytes of parameters a channel";
    }
    if (figures->port_bytes == 0) {
        return "the MAC array's port moves no bytes";
    }
    return figures->requantisers > 0 ? NULL : "the MAC array has no requantisers";
}

static const char *start(void *state, const struct device_place *place)
{
    struct mac_array *array = state;
    struct mac_array_figures *figures = &array->figures;
    array->place = place;
    const struct {
        const char *name;
        uint32_t *value;
    } wanted[] = {
        {"width", &figures->width},
        {"lanes", &figures->lanes},
        {"port_bytes", &figures->port_bytes},
        {"requantisers", &figures->requantisers},
        {"window_rows", &figures->window_rows},
        {"parameter_blocks", &figures->parameter_blocks},
        {"parameter_bytes_per_channel", &figures->parameter_bytes_per_channel},
        {"setup_cycles", &figures->setup_cycles},
        {"chain_cycles", &figures->chain_cycles},
        {"drain_cycles", &figures->drain_cycles},
        {"accumulator_bits", &array->accumulator_bits},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!take_figure(place, wanted[i].name, wanted[i].value)) {
            return "the board file lacks a figure of the MAC array";
        }
    }
    return wrong_figure(array);
}

/* ---- checks ---- */

static bool inside(const struct mac_array *array, const struct tensor *tensor)
{
    const struct range range = mac_array_range(tensor);
    return range.from >= 0 && range.to <= array->place->sram_bytes;
}

static bool has_kernel(const struct command *command)
{
    return command->kind != ADD;
}

static bool has_parameters(const struct command *command)
{
    return command->kind == CONVOLUTION || command->kind == DEPTHWISE;
}

static uint32_t flags_of(const struct command *command)
{
    switch (command->kind) {
    case CONVOLUTION:
        return (command->flags & SECOND) != 0 ? command->flags & ~(uint32_t)NIBBLES : command->flags;
    case DEPTHWISE:
        return command->flags & (RESIDUAL | NIBBLES);
    case ADD:
        return command->flags & PRODUCT;
    default:
        return 0;
    }
}

static bool kernel_is_right(const struct command *command)
{
    const bool input = command->input_height && command->input_width && command->input_channels;
    const bool kernel = command->kernel_height && command->kernel_width;
    const bool steps = command->stride_y && command->stride_x && command->dilation_y && command->dilation_x;
    const bool mixes = command->kind == CONVOLUTION;
    return input && kernel && steps && (mixes || command->input_channels == command->output_channels);
}

static bool fields_are_right(const struct command *command)
{
    const uint32_t flags = command->flags;
    if (!command->output_height || !command->output_width || !command->output_channels) {
        return false;
    }
    if ((flags & RESIDUAL) != 0 && (flags & (ACCUMULATE | RAW)) != 0) {
        return false;
    }
    return !has_kernel(command) || kernel_is_right(command);
}

static bool aligned(const struct command *command)
{
    if (has_parameters(command) && (command->flags & SECOND) == 0 && command->weights % 16 != 0) {
        return false;
    }
    if ((has_parameters(command) || command->kind == ADD) && command->parameters % 4 != 0) {
        return false;
    }
    return (command->flags & RESIDUAL) == 0 || command->residual_parameters % 4 == 0;
}

static bool all_inside(const struct mac_array *array, const struct command *command)
{
    struct tensor operands[MAC_ARRAY_MOST_OPERANDS];
    const uint32_t block = mac_array_block(command, array->figures.width, array->figures.lanes);
    const uint32_t count = mac_array_operands(command, block, operands);
    const struct tensor output = mac_array_output(command);
    const uint64_t second = (command->flags & SECOND) != 0 ? command->output_channels * mac_array_depth(command) : 0;
    bool all = inside(array, &output) && mac_array_result_bytes(command) <= array->place->sram_bytes &&
               second <= array->place->sram_bytes;
    for (uint32_t i = 0; i < count; i++) {
        all = all && inside(array, &operands[i]);
    }
    return all;
}

static uint32_t check(const struct mac_array *array, const struct command *command)
{
    if (command->kind < CONVOLUTION || command->kind > AVERAGE_POOL) {
        return ERROR_KIND;
    }
    if (!fields_are_right(command)) {
        return ERROR_FIELD;
    }
    if (!aligned(command)) {
        return ERROR_ALIGNMENT;
    }
    return all_inside(array, command) ? 0 : ERROR_OPERAND;
}

/* ---- chains ---- */

static void stop(struct mac_array *array)
{
    array->busy = false;
    array->place->services->set_event(array->place->host);
}

static void fail(struct mac_array *array, uint32_t error, uint32_t address)
{
    array->place->services->report_error(array->place->host, error, address);
    if (array->error == 0) {
        array->error = error;
        array->error_command = address;
    }
}

static uint32_t fetch(struct mac_array *array, uint32_t address)
{
    if (address % 16 != 0 || address + (uint64_t)sizeof array->command > array->place->sram_bytes) {
        return ERROR_PLACE;
    }
    memcpy(&array->command, array->place->sram + address, sizeof array->command);
    array->command.flags = (uint8_t)flags_of(&array->command);
    return check(array, &array->command);
}

/* Declare the memory of a tensor, pixel by pixel. */
static void declare(const struct mac_array *array, const struct tensor *tensor, device_access *access)
{
    for (uint32_t y = 0; y < tensor->height; y++) {
        for (uint32_t x = 0; x < tensor->width; x++) {
            const int64_t at = tensor->base + (int64_t)y * tensor->row_stride + (int64_t)x * tensor->pixel_stride;
            access(array->place->host, (uint32_t)at, (uint32_t)tensor->pixel_bytes);
        }
    }
}

/* Report overlaps that the manual forbids, and declare all reads. */
static void look_at_operands(const struct mac_array *array)
{
    struct tensor operands[MAC_ARRAY_MOST_OPERANDS];
    const struct device_services *services = array->place->services;
    const struct tensor output = mac_array_output(&array->command);
    const uint32_t block = mac_array_block(&array->command, array->figures.width, array->figures.lanes);
    const uint32_t count = mac_array_operands(&array->command, block, operands);
    const char *overlapped = mac_array_overlaps(&output, operands, count, array->place->sram_bytes);
    if (overlapped != NULL) {
        services->undefined(array->place->host, "a command of the MAC array lays its output on", overlapped,
                            array->address);
    }
    for (uint32_t i = 0; i < count && array->place->watched; i++) {
        declare(array, &operands[i], services->reads);
    }
}

/* `first`: the command is the first of its chain. */
static void begin(struct mac_array *array, uint32_t address, bool first)
{
    const struct device_services *services = array->place->services;
    const uint32_t error = fetch(array, address);
    array->busy = true;
    array->address = address;
    array->at_fault = error;
    array->since = services->now(array->place->host);
    if (error != 0 && first) {
        services->finish_after(array->place->host, array->figures.setup_cycles);
        return;
    }
    if (error != 0) {
        fail(array, error, address);
        stop(array);
        return;
    }
    if (array->place->watched) {
        services->fetches(array->place->host, address, sizeof array->command);
    }
    look_at_operands(array);
    services->finish_after(array->place->host, mac_array_cycles(&array->figures, &array->command, first));
}

static void compute(struct mac_array *array)
{
    const struct command *command = &array->command;
    const uint32_t block = mac_array_block(command, array->figures.width, array->figures.lanes);
    const bool second = (command->flags & SECOND) != 0, copied = (command->flags & (SECOND | NIBBLES)) != 0;
    /* Each size is at most twice the SRAM's size, or a block per byte of the SRAM. */
    const struct mac_array_scratch scratch = {needed(malloc(mac_array_window_bytes(command))),
                                              needed(malloc(mac_array_result_bytes(command))),
                                              copied ? needed(malloc(mac_array_weights(command, block))) : NULL,
                                              second ? needed(calloc(command->output_channels, sizeof(uint32_t))) : NULL};
    mac_array_compute(command, array->place->sram, block, array->accumulator_bits, scratch);
    free(scratch.window);
    free(scratch.results);
    free(scratch.weights);
    free(scratch.totals);
}

/* Read the operands and write the results only at the end of the command, to make software without a wait fail. */
static void finished(void *state)
{
    struct mac_array *array = state;
    const struct device_services *services = array->place->services;
    const uint64_t cycles = services->now(array->place->host) - array->since;
    array->busy_cycles += cycles;
    services->count_busy(array->place->host, cycles);
    if (array->at_fault != 0) {
        fail(array, array->at_fault, array->address);
        stop(array);
        return;
    }
    compute(array);
    if (array->place->watched) {
        const struct tensor output = mac_array_output(&array->command);
        declare(array, &output, services->writes);
    }
    array->completed++;
    if (array->command.next != 0) {
        begin(array, array->command.next, false);
    } else {
        stop(array);
    }
}

/* ---- registers ---- */

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct mac_array *array = state;
    switch ((enum register_offset)offset) {
    case STATUS:
        return (array->busy ? STATUS_BUSY : 0U) | (array->error != 0 ? STATUS_ERROR : 0U);
    case COMPLETED:
        return array->completed;
    case BUSY_CYCLES:
        return (uint32_t)(array->busy_cycles +
                          (array->busy ? array->place->services->now(array->place->host) - array->since : 0));
    case ERROR:
        return array->error;
    case ERROR_COMMAND:
        return array->error_command;
    default:
        return 0;
    }
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct mac_array *array = state;
    if (offset == ERROR) {
        array->error = 0;
        return;
    }
    if (offset != DOORBELL) {
        return;
    }
    array->place->services->take_over(array->place->host);
    if (array->busy) {
        fail(array, ERROR_BUSY, value);
    } else {
        begin(array, value, true);
    }
}

DEVICE_EXPORT const struct device_model mac_array_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct mac_array),
    .start = start,
    .read = read_register,
    .write = write_register,
    .finished = finished,
};
