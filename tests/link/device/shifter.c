/* A small net for the link's tests: out[i] = in[i] + offset row by row, and a few sums, in 40 layers.
 * Inputs and outputs share memory. */
#include "shifter.h"

#include "net.h"
#include "rpc.h"

enum { ROW = 300, ROWS = 3, STRIDE = 320, SUMS = 7, LAYERS = 40 };

static uint8_t arena[ROWS * STRIDE];
static uint8_t offset_input[2];
static uint8_t sums[SUMS];
static uint8_t layer_bytes[LAYERS];

static const struct net_tensor inputs[] = {
    {"image", arena, ROW, ROWS, STRIDE},
    {"offset", offset_input, 2, 1, 2},
};
static const struct net_tensor outputs[] = {
    {"shifted", arena, ROW, ROWS, STRIDE},
    {"sums", sums, SUMS, 1, SUMS},
};
static char layer_names[LAYERS][16];
static struct net_layer layers[LAYERS];
const struct net_description net_description = {
    .model = "shifter",
    .board = "pipes",
    .build_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    .input_count = 2,
    .output_count = 2,
    .layer_count = LAYERS,
    .inputs = inputs,
    .outputs = outputs,
    .layers = layers,
};

static void shift(void)
{
    for (uint32_t y = 0; y < ROWS; y++) {
        for (uint32_t x = 0; x < ROW; x++) {
            arena[y * STRIDE + x] = (uint8_t)(arena[y * STRIDE + x] + offset_input[0]);
        }
    }
}

/* The offset's second byte asks for trouble: 1 a failing run, 2 a fault. */
int32_t net_run(net_observer *observer)
{
    if (offset_input[1] == 2) {
        stop();
    }
    shift();
    take_time(1000);
    for (uint32_t i = 0; i < LAYERS; i++) {
        layer_bytes[i] = (uint8_t)(arena[0] + i);
        take_time(i == LAYERS - 1 ? UINT64_C(1) << 33 : 8 * i);
        if (observer != 0) {
            expect_observer();
            observer(i);
        }
    }
    for (uint32_t i = 0; i < SUMS; i++) {
        sums[i] = (uint8_t)(arena[0] + i);
    }
    return offset_input[1] == 1 ? -7 : 0;
}

/* --- what the generated project provides --- */

struct rpc_layer_record rpc_layer_records[LAYERS];
const struct rpc_region rpc_regions[] = {
    {(uint8_t *)(uintptr_t)MEMORY, MEMORY_BYTES, false},
    {(uint8_t *)(uintptr_t)(MEMORY + WRITABLE_AT), MEMORY_BYTES - WRITABLE_AT, true},
};
const uint32_t rpc_region_count = 2;

/* "layer 0" to "layer 39" */
static void name_layer(uint32_t layer)
{
    static const char stem[] = "layer ";
    char *at = layer_names[layer];
    for (const char *from = stem; *from != 0; from++) {
        *at++ = *from;
    }
    if (layer >= 10) {
        *at++ = (char)('0' + layer / 10);
    }
    *at = (char)('0' + layer % 10);
}

void name_layers(void)
{
    for (uint32_t i = 0; i < LAYERS; i++) {
        name_layer(i);
        layers[i] = (struct net_layer){layer_names[i], {layer_names[i], &layer_bytes[i], 1, 1, 1}};
    }
    layers[0].output = outputs[0];
}
