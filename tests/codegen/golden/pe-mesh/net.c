/* "image" on "pe-mesh": the network as the rest of the firmware sees it (net.h). Made by npukit VERSION. */
#include "net.h"

#include "kernels.h"
#include "memory.h"
#include "rpc.h"

__attribute__((section(".activations"), aligned(16))) uint8_t net_activations[NET_ACTIVATION_BYTES];

static net_observer *observer_of_frame;

static void mark(uint32_t layer)
{
    if (observer_of_frame != 0) {
        observer_of_frame(layer);
    }
}

/* One frame, in the order of the plan. Made from TIR by TVM's C code generator. */
static int32_t run_frame(int32_t observed)
{
    int32_t status = 0;
    if (observed != 0) {
        status = mac_array_run_one(&net_constants.conv_0_command);
        if (status != 0) {
            return status;
        }
        mark(0);
        status = mac_array_run_one(&net_constants.sum_0_command);
        if (status != 0) {
            return status;
        }
        mark(1);
    } else {
        status = mac_array_run(&net_constants.conv_0_command);
        if (status != 0) {
            return status;
        }
    }
    softmax_0(ARENA(at_sum_0), net_constants.softmax_0_exp, ARENA(at_softmax_0));
    mark(2);
    return 0;
}

int32_t net_run(net_observer *observer)
{
    observer_of_frame = observer;
    return run_frame(observer != 0);
}

static const struct net_tensor inputs[] = {
    { .name = "image", .data = &net_activations[at_image_0], .row_bytes = 120, .rows = 1, .stride = 120 },
};

static const struct net_tensor outputs[] = {
    { .name = "softmax", .data = &net_activations[at_softmax_0], .row_bytes = 120, .rows = 1, .stride = 120 },
};

static const struct net_layer layers[] = {
    { .name = "conv", .output = { .name = "conv", .data = &net_activations[at_conv_0], .row_bytes = 120, .rows = 1, .stride = 120 } },
    { .name = "sum", .output = { .name = "sum", .data = &net_activations[at_sum_0], .row_bytes = 120, .rows = 1, .stride = 120 } },
    { .name = "softmax", .output = { .name = "softmax", .data = &net_activations[at_softmax_0], .row_bytes = 120, .rows = 1, .stride = 120 } },
};

const struct net_description net_description = {
    .model = "image",
    .board = "pe-mesh",
    .build_id = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    .input_count = 1,
    .output_count = 1,
    .layer_count = 3,
    .inputs = inputs,
    .outputs = outputs,
    .layers = layers,
};

struct rpc_layer_record rpc_layer_records[3];

const struct rpc_region rpc_regions[] = {
    { .start = net_activations, .size = sizeof net_activations, .writable = true },
    { .start = (uint8_t *)(uintptr_t)&net_constants, .size = sizeof net_constants, .writable = false },
};
const uint32_t rpc_region_count = sizeof rpc_regions / sizeof rpc_regions[0];
