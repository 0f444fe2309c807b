/* Minimal network for the firmware's tests in place of a generated network: a single layer copies the input. */
#include "net.h"

#include <stdbool.h>
#include <string.h>

#include "rpc.h"

enum { BYTES = 64 };

__attribute__((section(".activations"), aligned(16))) static struct {
    struct net_control control;
    struct net_record records[1];
    uint8_t arena[2 * BYTES];
} net_activations;

struct net_control *const net_control = &net_activations.control;
struct net_record *const net_records = net_activations.records;
struct net_events *const net_events = 0;
const uint32_t net_event_capacity = 0;
rpc_handler *const rpc_events = 0;
rpc_handler *const rpc_states = 0;

__attribute__((section(".constants"), aligned(16), used)) static const uint8_t flip[16] = {0};

static const struct net_tensor input = {"input", net_activations.arena, BYTES, 1, BYTES, false, 0, 0, 0};
static const struct net_tensor output = {"output", net_activations.arena + BYTES, BYTES, 1, BYTES, false, 0, 0, 0};
static const char *const layer_names[] = {"copy"};
static const struct net_chip chips[] = {{0, 0}};
static const struct net_pe pes[] = {{0, 0}};
const uint32_t net_sign = 1;
static const uint32_t layer_count = 1;
const uint32_t *const net_layer_count = &layer_count;
const uint16_t *const net_layer_numbers = 0;
const struct net_layer net_layers[] = {{net_activations.arena + BYTES, BYTES, 1, BYTES, 1, BYTES}};

const struct net_description net_description = {
    .model = "identity",
    .board = "test",
    .build_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .input_count = 1,
    .output_count = 1,
    .frame_count = 1,
    .pe_count = 1,
    .chip_count = 1,
    .inputs = &input,
    .outputs = &output,
    .layer_names = layer_names,
    .pes = pes,
    .chips = chips,
};

const struct rpc_region rpc_regions[] = {{net_activations.arena, sizeof net_activations.arena, true}};
const uint32_t rpc_region_count = 1;

int32_t net_run(void)
{
    const int32_t observed = net_observed();
    if (observed != 0) {
        net_begin_layer();
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        net_activations.arena[BYTES + i] = net_activations.arena[i] ^ flip[i % sizeof flip];
    }
    if (observed != 0) {
        net_end_layer(0);
    }
    return 0;
}
