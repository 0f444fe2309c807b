/* The systolic array for npukit's built-in emulator, accurate to the cycle: systolic8x8.md. */
#include "device.h"

#include <string.h>

enum command { FILL = 1, LOAD, MULTIPLY, STORE };
enum error { ERROR_BUSY = 1, ERROR_COMMAND, ERROR_SRAM, ERROR_PLACE, ERROR_DEPTH };
enum { SIDE = 8, SCRATCHPAD_ROOM = 1 << 16, ACCUMULATOR_ROOM = 1024 };
enum { COMMAND, STATUS, ERROR, ADDRESS, STRIDE, PLACE, PLACE_STRIDE, ROWS, BYTES, DEPTH, VALUE, REGISTERS };

struct array {
    const struct device_place *place;
    uint32_t scratchpad_bytes, accumulator_rows, port_bytes, setup_cycles;
    uint32_t registers[REGISTERS]; /* as written; COMMAND, STATUS and ERROR unused */
    uint32_t running[REGISTERS];   /* the registers when the command started */
    uint32_t error;
    uint64_t cycles;
    bool busy;
    int32_t accumulators[ACCUMULATOR_ROOM][SIDE];
    uint8_t scratchpad[SCRATCHPAD_ROOM];
};

static bool take(const struct device_place *place, const char *name, uint32_t least, uint32_t most, uint32_t *value)
{
    for (uint32_t i = 0; i < place->figure_count; i++) {
        if (strcmp(place->figures[i].name, name) == 0) {
            *value = (uint32_t)place->figures[i].value;
            return *value >= least && *value <= most;
        }
    }
    return false;
}

static const char *start(void *state, const struct device_place *place)
{
    struct array *array = state;
    array->place = place;
    if (!take(place, "scratchpad_bytes", SIDE, SCRATCHPAD_ROOM, &array->scratchpad_bytes)) {
        return "systolic8x8 needs scratchpad_bytes of 8 to 65536";
    }
    if (!take(place, "accumulator_rows", 1, ACCUMULATOR_ROOM, &array->accumulator_rows)) {
        return "systolic8x8 needs accumulator_rows of 1 to 1024";
    }
    if (!take(place, "port_bytes", 1, 64, &array->port_bytes) || !take(place, "setup_cycles", 0, 10000, &array->setup_cycles)) {
        return "systolic8x8 needs port_bytes and setup_cycles";
    }
    return 0;
}

/* ---- checks ---- */

/* Return true if rows of `bytes` bytes, `stride` bytes apart, lie within 0..size. */
static bool inside(uint32_t start_at, int64_t stride, uint32_t rows, uint64_t bytes, uint32_t size)
{
    const int64_t last = (int64_t)start_at + (int64_t)(rows ? rows - 1 : 0) * stride;
    const int64_t low = last < start_at ? last : start_at;
    const int64_t high = (last > start_at ? last : start_at) + (int64_t)bytes;
    return low >= 0 && high <= size;
}

static uint32_t check_place(const struct array *array, uint32_t row_bytes)
{
    const uint32_t *r = array->registers;
    return inside(r[PLACE], (int32_t)r[PLACE_STRIDE], r[ROWS], row_bytes, array->scratchpad_bytes) ? 0 : ERROR_PLACE;
}

static uint32_t check_multiply(const struct array *array)
{
    const uint32_t *r = array->registers;
    if (r[DEPTH] == 0 || r[DEPTH] % SIDE != 0) {
        return ERROR_DEPTH;
    }
    if (r[ROWS] > array->accumulator_rows) {
        return ERROR_PLACE;
    }
    const bool weights = inside(r[ADDRESS], 0, 1, (uint64_t)SIDE * r[DEPTH], array->place->sram_bytes);
    return weights ? check_place(array, r[DEPTH]) : ERROR_SRAM;
}

static uint32_t check(const struct array *array, uint32_t command)
{
    const uint32_t *r = array->registers;
    switch (command) {
    case FILL:
        return check_place(array, r[BYTES]);
    case LOAD:
        return inside(r[ADDRESS], (int32_t)r[STRIDE], r[ROWS], r[BYTES], array->place->sram_bytes) ? check_place(array, r[BYTES])
                                                                                                  : ERROR_SRAM;
    case MULTIPLY:
        return check_multiply(array);
    case STORE:
        if (r[ROWS] > array->accumulator_rows) {
            return ERROR_PLACE;
        }
        return inside(r[ADDRESS], 4 * SIDE, r[ROWS], 4 * SIDE, array->place->sram_bytes) ? 0 : ERROR_SRAM;
    default:
        return ERROR_COMMAND;
    }
}

/* ---- cycles ---- */

static uint64_t cycles_of(const struct array *array, uint32_t command)
{
    const uint64_t rows = array->registers[ROWS], port = array->port_bytes;
    switch (command) {
    case MULTIPLY:
        return array->setup_cycles + (uint64_t)array->registers[DEPTH] / SIDE * (SIDE + rows) + 2 * SIDE;
    case STORE:
        return array->setup_cycles + rows * 4 * SIDE / port;
    default:
        return array->setup_cycles + rows * ((array->registers[BYTES] + port - 1) / port);
    }
}

/* ---- commands ---- */

static void fill_or_load(struct array *array, bool load)
{
    const uint32_t *r = array->running;
    for (uint32_t row = 0; row < r[ROWS]; row++) {
        uint8_t *to = array->scratchpad + (int64_t)r[PLACE] + (int64_t)row * (int32_t)r[PLACE_STRIDE];
        if (load) {
            memcpy(to, array->place->sram + (int64_t)r[ADDRESS] + (int64_t)row * (int32_t)r[STRIDE], r[BYTES]);
        } else {
            memset(to, (int)(r[VALUE] & 0xFF), r[BYTES]);
        }
    }
}

static int32_t sum(const struct array *array, uint32_t row, uint32_t column)
{
    const uint32_t *r = array->running;
    const int8_t *input = (const int8_t *)array->scratchpad + (int64_t)r[PLACE] + (int64_t)row * (int32_t)r[PLACE_STRIDE];
    const int8_t *weights = (const int8_t *)array->place->sram + r[ADDRESS] + column;
    uint32_t total = 0;
    for (uint32_t k = 0; k < r[DEPTH]; k++) {
        total += (uint32_t)(input[k] * weights[SIDE * k]);
    }
    return (int32_t)total;
}

static void multiply(struct array *array)
{
    for (uint32_t row = 0; row < array->running[ROWS]; row++) {
        for (uint32_t column = 0; column < SIDE; column++) {
            array->accumulators[row][column] = sum(array, row, column);
        }
    }
}

/* Read operands and write results only at the end, to expose software that does not wait. */
static void finished(void *state)
{
    struct array *array = state;
    const struct device_services *services = array->place->services;
    const uint32_t command = array->running[COMMAND];
    if (command == MULTIPLY) {
        multiply(array);
    } else if (command == STORE) {
        memcpy(array->place->sram + array->running[ADDRESS], array->accumulators, array->running[ROWS] * sizeof array->accumulators[0]);
    } else {
        fill_or_load(array, command == LOAD);
    }
    array->busy = false;
    services->count_busy(array->place->host, array->cycles);
    services->set_event(array->place->host);
}

/* ---- registers ---- */

static void begin(struct array *array, uint32_t command)
{
    const uint32_t error = array->busy ? ERROR_BUSY : check(array, command);
    if (error != 0) {
        array->error = array->error ? array->error : error;
        array->place->services->report_error(array->place->host, error, array->registers[ADDRESS]);
        return;
    }
    memcpy(array->running, array->registers, sizeof array->running);
    array->running[COMMAND] = command;
    array->cycles = cycles_of(array, command);
    array->busy = true;
    array->place->services->finish_after(array->place->host, array->cycles);
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

DEVICE_EXPORT const struct device_model systolic8x8_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct array),
    .start = start,
    .read = read_register,
    .write = write_register,
    .finished = finished,
};
