/* The smallest network: one layer that copies its input. Stands in for a generated one in the firmware's tests. */
#include "net.h"

#include <stdbool.h>
#include <string.h>

#include "rpc.h"

enum { BYTES = 64 };

__attribute__((section(".activations"), aligned(16))) static uint8_t net_activations[2 * BYTES];

__attribute__((section(".constants"), aligned(16), used)) static const uint8_t flip[16] = {0};

static const struct net_tensor input = {"input", net_activations, BYTES, 1, BYTES};
static const struct net_tensor output = {"output", net_activations + BYTES, BYTES, 1, BYTES};
static const struct net_layer layers[] = {{"copy", {"output", net_activations + BYTES, BYTES, 1, BYTES}}};

const struct net_description net_description = {
    .model = "identity",
    .board = "test",
    .build_id = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
    .input_count = 1,
    .output_count = 1,
    .layer_count = 1,
    .inputs = &input,
    .outputs = &output,
    .layers = layers,
};

struct rpc_layer_record rpc_layer_records[1];
const struct rpc_region rpc_regions[] = {{net_activations, sizeof net_activations, true}};
const uint32_t rpc_region_count = 1;

int32_t net_run(net_observer *observer)
{
    for (uint32_t i = 0; i < BYTES; i++) {
        net_activations[BYTES + i] = net_activations[i] ^ flip[i % sizeof flip];
    }
    if (observer != 0) {
        observer(0);
    }
    return 0;
}
