/* The graph NPU for npukit's built-in emulator, accurate to the cycle: graphnpu.md. */
#include "device.h"

#include "graphnpu_blob.h"

#include <string.h>

enum { START, STATUS, ERROR, BASE, REGISTERS = BASE + GRAPHNPU_BASES - 1 }; /* a word each */
enum { ERROR_BUSY = 1, ERROR_SRAM, ERROR_BLOB };

struct unit {
    const struct device_place *place;
    uint32_t registers[REGISTERS];
    uint32_t running[GRAPHNPU_BASES]; /* addresses: the blob, then the base registers at the start */
    bool busy;
};

static const char *start(void *state, const struct device_place *place)
{
    struct unit *unit = state;
    unit->place = place;
    return 0;
}

/* ---- before a run: check the blob and its accesses ---- */

static bool inside(const struct unit *unit, int32_t place, uint64_t bytes)
{
    const uint32_t base = (uint32_t)place >> GRAPHNPU_PLACE_BITS, offset = (uint32_t)place & ((1U << GRAPHNPU_PLACE_BITS) - 1);
    return base < GRAPHNPU_BASES && unit->running[base] + (uint64_t)offset + bytes <= unit->place->sram_bytes;
}

static uint64_t elements(struct graphnpu_plane plane)
{
    return (uint64_t)plane.height * (uint64_t)plane.width * (uint64_t)plane.channels;
}

static bool is_plane(struct graphnpu_plane plane)
{
    const int32_t most = 1 << 16;
    return plane.height > 0 && plane.width > 0 && plane.channels > 0 && plane.height < most && plane.width < most &&
           plane.channels < most;
}

static uint32_t check_layer(const struct unit *unit, const struct graphnpu_layer *layer)
{
    const bool kind = layer->kind >= GRAPHNPU_CONVOLUTION && layer->kind <= GRAPHNPU_MAXIMUM_POOL;
    const bool kernel = layer->kernel_height > 0 && layer->kernel_width > 0 && layer->kernel_height < 256 && layer->kernel_width < 256;
    if (!kind || !kernel || !is_plane(layer->in) || !is_plane(layer->out)) {
        return ERROR_BLOB;
    }
    const bool mixes = layer->kind == GRAPHNPU_CONVOLUTION, filters = layer->kind <= GRAPHNPU_DEPTHWISE;
    const uint64_t depth = (uint64_t)layer->kernel_height * (uint64_t)layer->kernel_width * (uint64_t)(mixes ? layer->in.channels : 1);
    const uint64_t channels = (uint64_t)layer->out.channels;
    const bool operands = inside(unit, layer->input, elements(layer->in)) && inside(unit, layer->output, elements(layer->out)) &&
                          inside(unit, layer->second, layer->kind == GRAPHNPU_ADD ? elements(layer->out) : 0);
    const uint64_t factors = filters ? channels : layer->kind == GRAPHNPU_ADD ? 3 : 0;
    const bool constants = inside(unit, layer->weights, filters ? channels * depth : 0) &&
                           inside(unit, layer->channel_words, factors * sizeof(struct graphnpu_factor));
    return operands && constants ? 0 : ERROR_SRAM;
}

static const struct graphnpu_blob *blob_of(const struct unit *unit)
{
    return (const struct graphnpu_blob *)(const void *)(unit->place->sram + unit->running[0]);
}

static uint32_t check(const struct unit *unit)
{
    if (unit->running[0] % 4 != 0 || unit->running[0] + sizeof(struct graphnpu_blob) > unit->place->sram_bytes) {
        return ERROR_SRAM;
    }
    const struct graphnpu_blob *blob = blob_of(unit);
    if (blob->magic != GRAPHNPU_MAGIC) {
        return ERROR_BLOB;
    }
    if (!inside(unit, 0, sizeof *blob + (uint64_t)blob->layers * sizeof blob->layer[0])) {
        return ERROR_SRAM;
    }
    uint32_t error = 0;
    for (uint32_t i = 0; error == 0 && i < blob->layers; i++) {
        error = check_layer(unit, &blob->layer[i]);
    }
    return error;
}

/* ---- a run ---- */

/* Read operands and write results only at the end, to expose software that does not wait. */
static void finished(void *state)
{
    struct unit *unit = state;
    const struct graphnpu_blob *blob = blob_of(unit);
    struct graphnpu_bases bases;
    for (int i = 0; i < GRAPHNPU_BASES; i++) {
        bases.at[i] = (int8_t *)unit->place->sram + unit->running[i];
    }
    /* Software may have overwritten the blob meanwhile. Nothing is computed then. */
    const uint32_t layers = check(unit) == 0 ? blob->layers : 0;
    for (uint32_t i = 0; i < layers; i++) {
        graphnpu_run_layer(&blob->layer[i], &bases);
    }
    unit->busy = false;
    unit->place->services->count_busy(unit->place->host, blob->cycles);
    unit->place->services->set_event(unit->place->host);
}

static void refuse(struct unit *unit, uint32_t error, uint32_t address)
{
    unit->registers[ERROR] = unit->registers[ERROR] ? unit->registers[ERROR] : error;
    unit->place->services->report_error(unit->place->host, error, address);
}

static void begin(struct unit *unit, uint32_t blob)
{
    if (unit->busy) {
        refuse(unit, ERROR_BUSY, blob);
        return;
    }
    unit->running[0] = blob;
    memcpy(unit->running + 1, unit->registers + BASE, sizeof unit->running - sizeof unit->running[0]);
    const uint32_t error = check(unit);
    if (error != 0) {
        refuse(unit, error, blob);
        return;
    }
    unit->busy = true;
    unit->place->services->finish_after(unit->place->host, blob_of(unit)->cycles);
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct unit *unit = state;
    if (offset / 4 == STATUS) {
        return unit->busy ? 1 : 0;
    }
    return offset / 4 < REGISTERS ? unit->registers[offset / 4] : 0;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct unit *unit = state;
    if (offset / 4 == START) {
        begin(unit, value);
    } else if (offset / 4 == ERROR) {
        unit->registers[ERROR] = 0;
    } else if (offset / 4 >= BASE && offset / 4 < REGISTERS) {
        unit->registers[offset / 4] = value;
    }
}

DEVICE_EXPORT const struct device_model graphnpu_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct unit),
    .start = start,
    .read = read_register,
    .write = write_register,
    .finished = finished,
};
