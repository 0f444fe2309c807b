/* A network over two PEs: PE 0 sends its input to PE 1, which adds one to each byte and sends the result back.
 * A first byte of BROKEN makes it fail. */
#include "net.h"

#include "hal.h"
#include "noc.h"
#include "rpc.h"

enum { BYTES = 64, WORK_ARRIVED = 3, RESULT_ARRIVED = 5, NEVER = 7, BROKEN = 0xBD, ERROR = 42 };

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
const uint32_t net_sign = 0x7B0;
static const uint32_t layer_count = 0;
const uint32_t *const net_layer_count = &layer_count;
const uint16_t *const net_layer_numbers = 0;
const struct net_layer net_layers[] = {{0}};

#define INPUT (net_activations.arena)
#define OUTPUT (net_activations.arena + BYTES)
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

static const struct net_tensor input = {"input", INPUT, BYTES, 1, BYTES, false, 0, 0, 0};
static const struct net_tensor output = {"output", OUTPUT, BYTES, 1, BYTES, false, 0, 0, 0};

static const struct net_chip chips[] = {{0, 0}};
static const struct net_pe pes[] = {
    {0, (uint32_t)&net_activations},
    {1, (uint32_t)&net_activations},
};

const struct net_description net_description = {
    .model = "there and back",
    .board = "pe-mesh",
    .input_count = 1,
    .output_count = 1,
    .frame_count = 1,
    .pe_count = 2,
    .chip_count = 1,
    .pes = pes,
    .chips = chips,
    .inputs = &input,
    .outputs = &output,
};

const struct rpc_region rpc_regions[] = {{net_activations.arena, sizeof net_activations.arena, true}};
const uint32_t rpc_region_count = 1;

static int32_t ask(void)
{
    const int32_t error = noc_send(&messages[0]);
    return error != 0 ? error : noc_wait(RESULT_ARRIVED, 1);
}

static int32_t answer(void)
{
    const int32_t error = noc_wait(WORK_ARRIVED, 1);
    if (INPUT[0] == BROKEN) {
        return ERROR;
    }
    for (uint32_t i = 0; i < BYTES; i++) {
        OUTPUT[i] = (uint8_t)(INPUT[i] + 1);
    }
    return error != 0 ? error : noc_send(&messages[1]);
}

int32_t net_run(void)
{
    switch (hal_pe()) {
    case 0:
        return ask();
    case 1:
        return answer();
    default:
        return noc_wait(NEVER, 1);
    }
}
