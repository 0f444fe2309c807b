/* SPDX-License-Identifier: Apache-2.0 */
/* "image" on "pe-mesh": the network's interface to the firmware (net.h). Made by npukit VERSION. */
#include "net.h"

#include "kernels.h"
#include "memory.h"
#include "rpc.h"

__attribute__((section(".activations"), aligned(16))) struct net_activations net_activations;
struct net_control *const net_control = &net_activations.control;
struct net_record *const net_records = net_activations.records;
struct net_events *const net_events = 0; /* no traces in this build */
const uint32_t net_event_capacity = 0;

const uint32_t net_sign = 0x00000001;

/* Output of each layer on this PE. */
static const uint32_t layer_count = NET_LAYERS;
const uint32_t *const net_layer_count = &layer_count;
const struct net_layer net_layers[] = {
    { .data = ARENA(at_sum_0), .row_bytes = 120, .rows = 1, .row_stride = 0, .planes = 1, .plane_stride = 0 }, /* sum [0:1, 0:5, 0:4, 0:6] */
    { .data = ARENA(at_softmax_0), .row_bytes = 120, .rows = 1, .row_stride = 0, .planes = 1, .plane_stride = 0 }, /* softmax [0:1, 0:5, 0:4, 0:6] */
};
const uint16_t *const net_layer_numbers = 0;

/* A frame, in the order of the plan. Made from TIR by TVM's C code generator. */
int32_t net_run(void)
{
    int32_t status = 0;
    int32_t observed = net_observed();
    if (observed != 0) {
        net_begin_layer();
        status = mac_array_run_one(&net_constants.sum_0_command);
        if (status != 0) {
            return status;
        }
        status = net_end_layer(0);
        if (status != 0) {
            return status;
        }
    } else {
        status = mac_array_run(&net_constants.sum_0_command);
        if (status != 0) {
            return status;
        }
    }
    if (observed != 0) {
        net_begin_layer();
    }
    softmax_0(ARENA(at_sum_0), net_constants.softmax_0_exp, ARENA(at_softmax_0));
    if (observed != 0) {
        status = net_end_layer(1);
        if (status != 0) {
            return status;
        }
    }
    return 0;
}

static const struct net_tensor inputs[] = {
    { .name = "image", .data = ARENA(at_image_0), .row_bytes = 120, .rows = 1, .stride = 120 }, /* image: int8[1,5,4,6] scale 0.02 zero 3 */
};

static const struct net_tensor outputs[] = {
    { .name = "softmax", .data = ARENA(at_softmax_0), .row_bytes = 120, .rows = 1, .stride = 120 }, /* softmax: int8[1,5,4,6] scale 0.00390625 zero -128 */
};

static const char *const layer_names[] = {
    "sum",
    "softmax",
};

static const struct net_pe pes[] = {
    { .pe = 0, .control = 0 },
};

static const struct net_chip chips[] = {
    { .pe = 0, .dram = 0 },
};

const struct net_description net_description = {
    .model = "image",
    .board = "pe-mesh",
    .build_id = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 },
    .input_count = 1,
    .output_count = 1,
    .frame_count = 1,
    .pe_count = 1,
    .chip_count = 1,
    .link_bytes = 256,
    .inputs = inputs,
    .outputs = outputs,
    .layer_names = layer_names,
    .pes = pes,
    .chips = chips,
};

const struct rpc_region rpc_regions[] = {
    { .start = net_activations.arena, .size = sizeof net_activations.arena, .writable = true },
    { .start = (uint8_t *)(uintptr_t)&net_constants, .size = sizeof net_constants, .writable = false },
};
rpc_handler *const rpc_events = 0;
rpc_handler *const rpc_states = 0;
const uint32_t rpc_region_count = sizeof rpc_regions / sizeof rpc_regions[0];
