/* Network for every PE of a chip, in place of a generated network. The root PE multicasts its input; each PE adds its
 * number to its part and copies the part back into the root PE's output. */
#include "net.h"

#include <stdbool.h>

#include "board.h"
#include "hal.h"
#include "noc.h"
#include "rpc.h"

enum { PES = 16, PART = 8, BYTES = PES * PART };
enum { CAME = 3, BACK = 5 };

struct activations {
    struct net_control control;
    struct net_record records[1];
    uint8_t input[BYTES];
    uint8_t output[BYTES];
};

__attribute__((section(".activations"), aligned(16))) static struct activations activations;
/* Volatile: a change in the image changes the result. */
__attribute__((section(".constants"), aligned(16), used)) static const volatile uint8_t flip[16] = {0};

static const struct net_tensor input = {"input", activations.input, BYTES, 1, BYTES, false, 0, 0, 0};
static const struct net_tensor output = {"output", activations.output, BYTES, 1, BYTES, false, 0, 0, 0};
static const char *const layer_names[] = {"add"};
static const struct net_chip chips[] = {{0, 0}};
static const struct net_pe pes[] = {{0, 0}}; /* the only PE that the host may query */

struct net_control *const net_control = &activations.control;
struct net_record *const net_records = activations.records;
struct net_events *const net_events = 0;
const uint32_t net_event_capacity = 0;
rpc_handler *const rpc_events = 0;
rpc_handler *const rpc_states = 0;
const uint32_t net_sign = 0x4E4F;
static const uint32_t layer_count = 1;
const uint32_t *const net_layer_count = &layer_count;
const uint16_t *const net_layer_numbers = 0;
const struct net_layer net_layers[] = {{activations.output, BYTES, 1, BYTES, 1, BYTES}};

const struct net_description net_description = {
    .model = "mesh",
    .board = "pe-mesh",
    .build_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
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

const struct rpc_region rpc_regions[] = {{(uint8_t *)&activations, sizeof activations, true}};
const uint32_t rpc_region_count = 1;

static struct noc_destination others[PES - 1];
static _Alignas(16) struct noc_descriptor message;

static uint32_t address_of(const void *data)
{
    return (uint32_t)(uintptr_t)data;
}

static int32_t send_to_all(void)
{
    for (uint32_t pe = 1; pe < PES; pe++) {
        others[pe - 1] = (struct noc_destination){pe, address_of(activations.input)};
    }
    message = (struct noc_descriptor){
        .kind = NOC_COPY,
        .options = NOC_MULTICAST,
        .source_pe = 0,
        .source = activations.input,
        .destination_pe = address_of(others),
        .destination = PES - 1,
        .row_bytes = BYTES,
        .rows = 1,
        .source_flag = NOC_NO_FLAG,
        .destination_flag = CAME,
    };
    return noc_send(&message);
}

static int32_t send_back(uint32_t pe)
{
    message = (struct noc_descriptor){
        .kind = NOC_COPY,
        .source_pe = pe,
        .source = activations.output + pe * PART,
        .destination_pe = 0,
        .destination = address_of(activations.output + pe * PART),
        .row_bytes = PART,
        .rows = 1,
        .source_flag = NOC_NO_FLAG,
        .destination_flag = BACK,
    };
    return noc_send(&message);
}

static void add(uint32_t pe)
{
    for (uint32_t i = pe * PART; i < (pe + 1) * PART; i++) {
        activations.output[i] = (uint8_t)((activations.input[i] + pe) ^ flip[i % sizeof flip]);
    }
}

int32_t net_run(void)
{
    const uint32_t pe = hal_pe();
    int32_t error = pe == 0 ? send_to_all() : noc_wait(CAME, 1);
    if (error == 0) {
        net_begin_layer();
        add(pe);
        error = pe == 0 ? noc_wait(BACK, PES - 1) : send_back(pe);
    }
    if (error == 0 && net_observed()) {
        net_end_layer(0);
    }
    return error;
}
