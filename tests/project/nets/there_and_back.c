/* A network over two PEs: PE 0 sends its input to PE 1, which adds one to each byte and sends the result back. */
#include "net.h"

#include "hal.h"
#include "noc.h"
#include "rpc.h"

enum { BYTES = 64, WORK_ARRIVED = 3, RESULT_ARRIVED = 5, NEVER = 7 };

__attribute__((section(".activations"), aligned(16))) static uint8_t net_activations[2 * BYTES];

#define INPUT (net_activations)
#define OUTPUT (net_activations + BYTES)
#define COPY(from_pe, to_pe, bytes, flag) \
    { \
        .kind = NOC_COPY, .source_pe = (from_pe), .source = (bytes), .destination_pe = (to_pe), \
        .destination = (uint32_t)(bytes), .row_bytes = BYTES, .rows = 1, .source_flag = NOC_NO_FLAG, \
        .destination_flag = (flag) \
    }

__attribute__((section(".constants"), aligned(16), used)) static const struct noc_descriptor messages[] = {
    COPY(0, 1, INPUT, WORK_ARRIVED),
    COPY(1, 0, OUTPUT, RESULT_ARRIVED),
};

static const struct net_tensor input = {"input", INPUT, BYTES, 1, BYTES};
static const struct net_tensor output = {"output", OUTPUT, BYTES, 1, BYTES};

const struct net_description net_description = {
    .model = "there and back",
    .board = "pe-mesh",
    .input_count = 1,
    .output_count = 1,
    .inputs = &input,
    .outputs = &output,
};

struct rpc_layer_record rpc_layer_records[1];
const struct rpc_region rpc_regions[] = {{net_activations, sizeof net_activations, true}};
const uint32_t rpc_region_count = 1;

static int32_t ask(void)
{
    const int32_t error = noc_send(&messages[0]);
    return error != 0 ? error : noc_wait(RESULT_ARRIVED, 1);
}

static int32_t answer(void)
{
    const int32_t error = noc_wait(WORK_ARRIVED, 1);
    for (uint32_t i = 0; i < BYTES; i++) {
        OUTPUT[i] = (uint8_t)(INPUT[i] + 1);
    }
    return error != 0 ? error : noc_send(&messages[1]);
}

int32_t net_run(net_observer *observer)
{
    (void)observer;
    switch (hal_pe()) {
    case 0:
        return ask();
    case 1:
        return answer();
    default:
        return noc_wait(NEVER, 1);
    }
}
