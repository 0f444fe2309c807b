/* A small net for the link's tests: out[i] = in[i] + offset row by row, and a few sums, in 40 layers.
 * Inputs and outputs share memory. */
#include "shifter.h"

#include "net.h"
#include "rpc.h"

enum { EVENTS = 4, ROW = 300, ROWS = 3, STRIDE = 320, SUMS = 7 };

static uint8_t arena[ROWS * STRIDE];
static uint8_t offset_input[2];
static uint8_t sums[SUMS];
static uint8_t layer_bytes[LAYERS];

static const struct net_tensor inputs[] = {
    {"image", arena, ROW, ROWS, STRIDE, false, 0, 0, 0},
    {"offset", offset_input, 2, 1, 2, false, 0, 0, 0},
};
static const struct net_tensor outputs[] = {
    {"shifted", arena, ROW, ROWS, STRIDE, false, 0, 0, 0},
    {"sums", sums, SUMS, 1, SUMS, false, 0, 0, 0},
};
static char names[LAYERS][16];
static const char *layer_names[LAYERS];
static const struct net_chip chips[] = {{0, 0}};
static const struct net_pe pes[] = {{PE, 0}, {NEIGHBOUR, CONTROL_AT}};
const uint32_t net_sign = SIGN;
static const uint32_t layer_count = LAYERS;
const uint32_t *const net_layer_count = &layer_count;

#define LAYER(i) {&layer_bytes[i], 1, 1, 0, 1, 0}
#define FIVE_LAYERS(i) LAYER(i), LAYER(i + 1), LAYER(i + 2), LAYER(i + 3), LAYER(i + 4)

const uint16_t *const net_layer_numbers = 0;
const struct net_layer net_layers[LAYERS] = {
    {arena, 100, 3, 100, ROWS, STRIDE}, /* each row in three parts */
    LAYER(1), LAYER(2), LAYER(3), LAYER(4),
    FIVE_LAYERS(5), FIVE_LAYERS(10), FIVE_LAYERS(15), FIVE_LAYERS(20), FIVE_LAYERS(25), FIVE_LAYERS(30), FIVE_LAYERS(35),
};

static struct net_control control;
static struct net_record records[LAYERS];
struct net_control *const net_control = &control;
struct net_record *const net_records = records;
static struct {
    struct net_events head;
    struct net_event ring[EVENTS];
} events;
struct net_events *const net_events = &events.head;
const uint32_t net_event_capacity = EVENTS;
rpc_handler *const rpc_events = rpc_read_events;
rpc_handler *const rpc_states = rpc_reset_states;
const struct net_description net_description = {
    .model = "shifter",
    .board = "pipes",
    .build_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    .input_count = 2,
    .output_count = 2,
    .frame_count = 1,
    .pe_count = PES,
    .chip_count = 1,
    .link_bytes = 128, /* a window of 4 */
    .inputs = inputs,
    .outputs = outputs,
    .layer_names = layer_names,
    .pes = pes,
    .chips = chips,
};

static void shift(void)
{
    for (uint32_t y = 0; y < ROWS; y++) {
        for (uint32_t x = 0; x < ROW; x++) {
            arena[y * STRIDE + x] = (uint8_t)(arena[y * STRIDE + x] + offset_input[0]);
        }
    }
}

static void run_layer(uint32_t layer)
{
    if (layer == 0) {
        shift();
        take_time(1000);
    }
    layer_bytes[layer] = (uint8_t)(arena[0] + layer);
    take_time(layer == LAYERS - 1 ? UINT64_C(1) << 33 : 8 * layer);
}

/* The offset's second byte asks for trouble: 1 a failing run, 2 a fault; 3 for a line of text. */
int32_t net_run(void)
{
    if (offset_input[1] == 3) {
        rpc_log("shifting");
    }
    if (offset_input[1] == 2) {
        stop();
    }
    net_event(0);
    for (uint32_t i = 0; i < LAYERS; i++) {
        net_begin_layer();
        run_layer(i);
        if (net_observed()) {
            net_end_layer(i);
        }
    }
    for (uint32_t i = 0; i < SUMS; i++) {
        sums[i] = (uint8_t)(arena[0] + i);
    }
    net_event(NET_FRAME_END);
    return offset_input[1] == 1 ? -7 : 0;
}

/* --- provided by a generated project --- */

const struct rpc_region rpc_regions[] = {
    {(uint8_t *)(uintptr_t)MEMORY, MEMORY_BYTES, false},
    {(uint8_t *)(uintptr_t)(MEMORY + WRITABLE_AT), MEMORY_BYTES - WRITABLE_AT, true},
};
const uint32_t rpc_region_count = 2;

const struct rpc_stretch rpc_loaded[RPC_LOADED] = {
    {(const uint8_t *)(uintptr_t)MEMORY, (const uint8_t *)(uintptr_t)(MEMORY + MEMORY_BYTES)},
};

/* "layer 0" to "layer 39" */
static void name_layer(uint32_t layer)
{
    static const char stem[] = "layer ";
    char *at = names[layer];
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
        layer_names[i] = names[i];
    }
}
