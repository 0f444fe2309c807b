/* SPDX-License-Identifier: Apache-2.0 */
/* A machine-learning array of 4 x 16 cells for npukit's built-in emulator, with the published limits of SpiNNaker2:
 * 24-bit sums, products of matrices and convolutions of stride 1, output of four results per cycle. Its registers are
 * npukit's own. */
#include "device.h"

#include <string.h>

enum { MULTIPLY = 1, CONVOLVE = 2 };
enum error { ERROR_BUSY = 1, ERROR_COMMAND, ERROR_SRAM, ERROR_SIZE, ERROR_ALIGNMENT };
enum {
    COMMAND, STATUS, ERROR, A, B, TARGET, ROWS, DEPTH, COLUMNS, A_STRIDE,
    CHANNELS, KERNEL_HEIGHT, KERNEL_WIDTH, ROW_STRIDE, PLANE_STRIDE, RIGHT, REGISTERS
};
enum { WIDTH = 16, LANES = 4, OUT_CYCLES = WIDTH * LANES / 4, LARGEST = 1 << 20 };

struct array {
    const struct device_place *place;
    uint32_t setup_cycles, accumulator_bits;
    uint32_t registers[REGISTERS];
    uint32_t running[REGISTERS];
    uint32_t error;
    uint64_t cycles;
    bool busy;
};

static bool take(const struct device_place *place, const char *name, uint32_t most, uint32_t *value)
{
    for (uint32_t i = 0; i < place->figure_count; i++) {
        if (strcmp(place->figures[i].name, name) == 0) {
            *value = (uint32_t)place->figures[i].value;
            return *value <= most;
        }
    }
    return false;
}

static const char *start(void *state, const struct device_place *place)
{
    struct array *array = state;
    array->place = place;
    if (!take(place, "setup_cycles", 10000, &array->setup_cycles) || !take(place, "accumulator_bits", 32, &array->accumulator_bits)) {
        return "mla needs setup_cycles, and accumulator_bits of at most 32";
    }
    return array->accumulator_bits < 8 ? "mla needs accumulator_bits of at least 8" : 0;
}

static uint64_t blocks(uint64_t count, uint64_t each)
{
    return (count + each - 1) / each;
}

/* ---- checks ---- */

struct span {
    uint64_t start, bytes;
};

static struct span a_of(const uint32_t *r)
{
    const uint64_t taps = (uint64_t)r[DEPTH] * r[KERNEL_HEIGHT] * r[KERNEL_WIDTH];
    const uint64_t weights = blocks(r[CHANNELS], LANES) * LANES * taps;
    const uint64_t rows = (uint64_t)(r[ROWS] - 1) * r[A_STRIDE] + r[DEPTH];
    return (struct span){r[A], r[COMMAND] == MULTIPLY ? rows : weights};
}

static struct span b_of(const uint32_t *r)
{
    const uint64_t columns = blocks(r[COLUMNS], WIDTH) * WIDTH * r[DEPTH];
    const uint64_t rows = (uint64_t)r[ROWS] + r[KERNEL_HEIGHT] - 1;
    const uint64_t planes = (uint64_t)(r[DEPTH] - 1) * r[PLANE_STRIDE] + rows * r[ROW_STRIDE];
    return (struct span){r[B], r[COMMAND] == MULTIPLY ? columns : planes};
}

static struct span target_of(const uint32_t *r)
{
    const uint64_t width = 4 * WIDTH * blocks(r[COLUMNS], WIDTH);
    return (struct span){r[TARGET], width * r[ROWS] * (r[COMMAND] == MULTIPLY ? 1 : r[CHANNELS])};
}

static bool within(const struct array *array, struct span span)
{
    return span.start + span.bytes <= array->place->sram_bytes;
}

static bool sized(const uint32_t *r)
{
    const uint32_t sizes[] = {r[ROWS], r[DEPTH], r[COLUMNS], r[A_STRIDE], r[CHANNELS], r[KERNEL_HEIGHT], r[KERNEL_WIDTH], r[ROW_STRIDE], r[PLANE_STRIDE]};
    const uint32_t count = r[COMMAND] == MULTIPLY ? 4 : 9;
    for (uint32_t i = 0; i < count; i++) {
        if (i != 3 && (sizes[i] == 0 || sizes[i] > LARGEST)) {
            return false;
        }
    }
    return r[COMMAND] == MULTIPLY ? r[DEPTH] % WIDTH == 0 && r[A_STRIDE] <= LARGEST && r[RIGHT] < 32
                                  : r[ROW_STRIDE] >= r[COLUMNS] + r[KERNEL_WIDTH] - 1;
}

static uint32_t check(const struct array *array, const uint32_t *r)
{
    if (r[COMMAND] != MULTIPLY && r[COMMAND] != CONVOLVE) {
        return ERROR_COMMAND;
    }
    if (!sized(r)) {
        return ERROR_SIZE;
    }
    const uint32_t strides = r[COMMAND] == MULTIPLY ? r[A_STRIDE] : r[ROW_STRIDE] | r[PLANE_STRIDE];
    if (((r[A] | r[B] | r[TARGET] | strides) % WIDTH) != 0) {
        return ERROR_ALIGNMENT;
    }
    return within(array, a_of(r)) && within(array, b_of(r)) && within(array, target_of(r)) ? 0 : ERROR_SRAM;
}

/* ---- sums ---- */

static int32_t wrapped(const struct array *array, uint32_t sum)
{
    const uint32_t rest = 32 - array->accumulator_bits;
    return (int32_t)(sum << rest) >> rest;
}

/* Write a sum. With a shift, the output stage writes the low 16 bits of the shifted sum, and 0 for a negative sum. */
static void leave(uint8_t *target, uint32_t place, int32_t sum, uint32_t right)
{
    if (right == 0) {
        ((int32_t *)(void *)target)[place] = sum;
    } else {
        ((uint16_t *)(void *)target)[place] = (uint16_t)(sum < 0 ? 0 : sum >> right);
    }
}

static void multiply(struct array *array)
{
    const uint32_t *r = array->running;
    const uint32_t columns = (uint32_t)blocks(r[COLUMNS], WIDTH) * WIDTH;
    uint8_t *target = array->place->sram + r[TARGET];
    for (uint32_t row = 0; row < r[ROWS]; row++) {
        const int8_t *a = (const int8_t *)array->place->sram + r[A] + (uint64_t)row * r[A_STRIDE];
        for (uint32_t column = 0; column < columns; column++) {
            const int8_t *b = (const int8_t *)array->place->sram + r[B] + column / WIDTH * WIDTH * r[DEPTH] + column % WIDTH;
            uint32_t sum = 0;
            for (uint32_t k = 0; k < r[DEPTH]; k++) {
                sum += (uint32_t)(a[k] * b[WIDTH * k]);
            }
            leave(target, row * columns + column, wrapped(array, sum), r[RIGHT]);
        }
    }
}

static uint32_t window(const struct array *array, uint32_t channel, uint32_t row, uint32_t x)
{
    const uint32_t *r = array->running;
    const uint32_t taps = r[DEPTH] * r[KERNEL_HEIGHT] * r[KERNEL_WIDTH];
    const int8_t *weight = (const int8_t *)array->place->sram + r[A] + channel / LANES * LANES * taps + channel % LANES;
    uint32_t sum = 0;
    for (uint32_t c = 0; c < r[DEPTH]; c++) {
        for (uint32_t ky = 0; ky < r[KERNEL_HEIGHT]; ky++) {
            const int8_t *line = (const int8_t *)array->place->sram + r[B] + c * r[PLANE_STRIDE] + (row + ky) * r[ROW_STRIDE] + x;
            for (uint32_t kx = 0; kx < r[KERNEL_WIDTH]; kx++) {
                sum += (uint32_t)(line[kx] * *weight);
                weight += LANES;
            }
        }
    }
    return sum;
}

static void convolve(struct array *array)
{
    const uint32_t *r = array->running;
    const uint32_t width = (uint32_t)blocks(r[COLUMNS], WIDTH) * WIDTH;
    int32_t *target = (int32_t *)(void *)(array->place->sram + r[TARGET]);
    for (uint32_t channel = 0; channel < r[CHANNELS]; channel++) {
        for (uint32_t row = 0; row < r[ROWS]; row++) {
            for (uint32_t x = 0; x < r[COLUMNS]; x++) {
                target[(channel * r[ROWS] + row) * width + x] = wrapped(array, window(array, channel, row, x));
            }
        }
    }
}

/* Read operands and write results only at completion, to expose software that does not wait. */
static void finished(void *state)
{
    struct array *array = state;
    const struct device_services *services = array->place->services;
    if (array->running[COMMAND] == MULTIPLY) {
        multiply(array);
    } else {
        convolve(array);
    }
    array->busy = false;
    services->count_busy(array->place->host, array->cycles);
    services->set_event(array->place->host);
}

/* ---- registers ---- */

static uint64_t cycles_of(const struct array *array, const uint32_t *r)
{
    const uint64_t pixels = blocks(r[COLUMNS], WIDTH);
    if (r[COMMAND] == MULTIPLY) {
        return array->setup_cycles + blocks(r[ROWS], LANES) * pixels * (r[DEPTH] + OUT_CYCLES);
    }
    const uint64_t taps = (uint64_t)r[DEPTH] * r[KERNEL_HEIGHT] * r[KERNEL_WIDTH];
    return array->setup_cycles + r[ROWS] * pixels * blocks(r[CHANNELS], LANES) * (taps + OUT_CYCLES);
}

static void begin(struct array *array, uint32_t command)
{
    const struct device_services *services = array->place->services;
    array->registers[COMMAND] = command;
    services->take_over(array->place->host);
    const uint32_t error = array->busy ? ERROR_BUSY : check(array, array->registers);
    if (error != 0) {
        array->error = array->error ? array->error : error;
        services->report_error(array->place->host, error, array->registers[A]);
        return;
    }
    memcpy(array->running, array->registers, sizeof array->running);
    array->cycles = cycles_of(array, array->running);
    array->busy = true;
    services->finish_after(array->place->host, array->cycles);
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct array *array = state;
    switch (offset / 4) {
    case STATUS:
        return (array->busy ? 1U : 0U) | (array->error ? 2U : 0U);
    case ERROR:
        return array->error;
    default:
        return offset / 4 > ERROR && offset / 4 < REGISTERS ? array->registers[offset / 4] : 0;
    }
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct array *array = state;
    if (offset / 4 == COMMAND) {
        begin(array, value);
    } else if (offset / 4 == ERROR) {
        array->error = 0;
    } else if (offset / 4 > ERROR && offset / 4 < REGISTERS) {
        array->registers[offset / 4] = value;
    }
}

DEVICE_EXPORT const struct device_model mla_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct array),
    .start = start,
    .read = read_register,
    .write = write_register,
    .finished = finished,
};
