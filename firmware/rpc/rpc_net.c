/* Requests about the network: its tensors, its runs, its layers. */
#include "bytes.h"
#include "crc32.h"
#include "hal.h"
#include "net.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { INPUTS, OUTPUTS, LAYERS };
enum { LONGEST_NAME = 255, ENTRY_BYTES = 5, RECORD_BYTES = 16, RUN_BYTES = 32 };
_Static_assert(ENTRY_BYTES + LONGEST_NAME <= RPC_PAYLOAD_BYTES, "an entry fits a packet, or a description would never end");

static struct {
    bool done;
    uint32_t number;
    int32_t status;
    struct hal_counters spent;
} last_run;

static bool outputs_in_place;
static bool records_complete; /* of the last observed run */

/* Up to where what net_run() does has been counted. */
static struct hal_counters counted;

void rpc_forget_run(void)
{
    last_run.done = false;
    outputs_in_place = false;
    records_complete = false;
}

/* --- tensors --- */

static uint32_t size_of(const struct net_tensor *tensor)
{
    return tensor->row_bytes * tensor->rows;
}

static uint8_t *byte_of(const struct net_tensor *tensor, uint32_t offset)
{
    return tensor->data + offset / tensor->row_bytes * tensor->stride + offset % tensor->row_bytes;
}

static bool lies_in(const struct net_tensor *tensor, uint32_t offset, uint32_t size)
{
    return offset <= size_of(tensor) && size <= size_of(tensor) - offset;
}

struct rpc_answer rpc_write_input(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)payload;
    uint32_t index = get16(arguments), offset = get32(arguments + 4), bytes = size - 8;
    if (index >= net_description.input_count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, net_description.input_count);
    }
    const struct net_tensor *input = &net_description.inputs[index];
    if (!lies_in(input, offset, bytes)) {
        return rpc_refuse(RPC_OUT_OF_RANGE, size_of(input));
    }
    outputs_in_place = false; /* inputs and outputs may share memory */
    for (uint32_t i = 0; i < bytes; i++) {
        *byte_of(input, offset + i) = arguments[8 + i];
    }
    return rpc_done(0);
}

struct rpc_answer rpc_read_output(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    uint32_t index = get16(arguments), bytes = get16(arguments + 2), offset = get32(arguments + 4);
    if (index >= net_description.output_count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, net_description.output_count);
    }
    const struct net_tensor *output = &net_description.outputs[index];
    if (!outputs_in_place) {
        return rpc_refuse(RPC_NO_OUTPUT, 0);
    }
    if (bytes > RPC_PAYLOAD_BYTES) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (!lies_in(output, offset, bytes)) {
        return rpc_refuse(RPC_OUT_OF_RANGE, size_of(output));
    }
    for (uint32_t i = 0; i < bytes; i++) {
        payload[i] = *byte_of(output, offset + i);
    }
    return rpc_done(bytes);
}

/* --- names and sizes --- */

static uint32_t count_of(uint32_t table)
{
    switch (table) {
    case INPUTS:
        return net_description.input_count;
    case OUTPUTS:
        return net_description.output_count;
    case LAYERS:
        return net_description.layer_count;
    default:
        return 0;
    }
}

static uint32_t length_of(const char *name)
{
    uint32_t length = 0;
    while (length < LONGEST_NAME && name[length] != 0) {
        length++;
    }
    return length;
}

static uint32_t put_entry(uint8_t *at, const char *name, const struct net_tensor *tensor, uint32_t left)
{
    uint32_t length = length_of(name);
    if (ENTRY_BYTES + length > left) {
        return 0;
    }
    put32(at, size_of(tensor));
    at[4] = (uint8_t)length;
    for (uint32_t i = 0; i < length; i++) {
        at[ENTRY_BYTES + i] = (uint8_t)name[i];
    }
    return ENTRY_BYTES + length;
}

static uint32_t put_tensor_or_layer(uint8_t *at, uint32_t table, uint32_t index, uint32_t left)
{
    if (table == LAYERS) {
        const struct net_layer *layer = &net_description.layers[index];
        return put_entry(at, layer->name, &layer->output, left);
    }
    const struct net_tensor *tensors = table == INPUTS ? net_description.inputs : net_description.outputs;
    return put_entry(at, tensors[index].name, &tensors[index], left);
}

/* As many entries of the table, from `first` on, as fit. */
struct rpc_answer rpc_describe(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size;
    uint32_t table = get16(arguments), first = get16(arguments + 2), count = count_of(table);
    if (first >= count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, count);
    }
    uint32_t end = 0;
    for (uint32_t index = first; index < count; index++) {
        uint32_t bytes = put_tensor_or_layer(payload + end, table, index, RPC_PAYLOAD_BYTES - end);
        if (bytes == 0) {
            break;
        }
        end += bytes;
    }
    return rpc_done(end);
}

/* --- runs --- */

static uint32_t at_most_32_bits(uint64_t count)
{
    return count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
}

/* What net_run() has spent since `counted`, added to the run's account. */
static struct hal_counters spend(void)
{
    struct hal_counters now;
    hal_count(&now);
    struct hal_counters spent = {
        .cycles = now.cycles - counted.cycles,
        .instructions = now.instructions - counted.instructions,
        .asleep = now.asleep - counted.asleep,
    };
    last_run.spent.cycles += spent.cycles;
    last_run.spent.instructions += spent.instructions;
    last_run.spent.asleep += spent.asleep;
    return spent;
}

static uint32_t digest_of(const struct net_tensor *tensor)
{
    uint32_t digest = 0;
    for (uint32_t row = 0; row < tensor->rows; row++) {
        digest = crc32_update(digest, tensor->data + row * tensor->stride, tensor->row_bytes);
    }
    return digest;
}

static void record_layer(uint32_t layer)
{
    struct hal_counters spent = spend();
    rpc_layer_records[layer] = (struct rpc_layer_record){
        .digest = digest_of(&net_description.layers[layer].output),
        .cycles = at_most_32_bits(spent.cycles),
        .instructions = at_most_32_bits(spent.instructions),
        .asleep = at_most_32_bits(spent.asleep),
    };
    hal_count(&counted); /* the observation itself is on nobody's account */
}

static void run(bool observe)
{
    last_run.spent = (struct hal_counters){0};
    hal_count(&counted);
    last_run.status = net_run(observe ? record_layer : 0);
    spend();
    last_run.done = true;
    outputs_in_place = last_run.status == 0;
    if (observe) {
        records_complete = outputs_in_place;
    }
}

struct rpc_answer rpc_run(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size;
    uint32_t number = get32(arguments);
    bool observe = get32(arguments + 4) != 0;
    if (!last_run.done || last_run.number != number) { /* else the host missed the reply and asks again */
        run(observe);
        last_run.number = number;
    }
    uint8_t *at = put32(put32(payload, number), (uint32_t)last_run.status);
    put64(put64(put64(at, last_run.spent.cycles), last_run.spent.instructions), last_run.spent.asleep);
    return rpc_done(RUN_BYTES);
}

/* As many records, from the layer `first` on, as fit. */
struct rpc_answer rpc_read_layers(const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)size;
    uint32_t first = get16(arguments), count = net_description.layer_count;
    if (first >= count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, count);
    }
    if (!records_complete) {
        return rpc_refuse(RPC_NOT_OBSERVED, 0);
    }
    uint8_t *at = payload;
    for (uint32_t i = first; i < count && at - payload <= RPC_PAYLOAD_BYTES - RECORD_BYTES; i++) {
        const struct rpc_layer_record *record = &rpc_layer_records[i];
        at = put32(put32(at, record->digest), record->cycles);
        at = put32(put32(at, record->instructions), record->asleep);
    }
    return rpc_done((uint32_t)(at - payload));
}
