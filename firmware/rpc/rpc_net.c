/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about the network's tensors. */
#include "bytes.h"
#include "hal.h"
#include "net.h"
#include "rpc.h"
#include "rpc_answer.h"
#include "rpc_tensor.h"

enum { INPUTS, OUTPUTS, LAYERS };
enum { LONGEST_NAME = 255, ENTRY_BYTES = 5 };
_Static_assert(ENTRY_BYTES + LONGEST_NAME <= RPC_PAYLOAD_BYTES, "an entry fits a packet, or a description would never end");

static bool outputs_in_place;

void rpc_outputs_are(bool in_place)
{
    outputs_in_place = in_place;
}

/* Bytes of a host element for each byte of the tensor. */
static uint32_t host_bytes(const struct net_tensor *tensor)
{
    return tensor->conversion != 0 ? tensor->conversion->host_bytes : 1;
}

/* Size of the tensor in the host's bytes. */
static uint32_t size_of(const struct net_tensor *tensor)
{
    return tensor->row_bytes * tensor->rows * host_bytes(tensor);
}

/* `index` in the host's numbering: all tensors of a frame, frame by frame, chip by chip. */
static struct rpc_place place_of(const struct net_tensor *tensors, uint32_t count, uint32_t index)
{
    const struct net_tensor *tensor = &tensors[index % count];
    const uint32_t frames = net_description.frame_count, frame = index / count % frames;
    const uint32_t behind = tensor->frame_offsets != 0 ? tensor->frame_offsets[frame] : frame * tensor->frame_stride;
    return (struct rpc_place){tensor, &net_description.chips[index / count / frames], tensor->data + behind};
}

static uint32_t count_of_all(uint32_t count)
{
    return count * net_description.frame_count * net_description.chip_count;
}

static uint8_t *byte_of(const struct rpc_place *place, uint32_t offset)
{
    const struct net_tensor *tensor = place->tensor;
    return place->data + offset / tensor->row_bytes * tensor->stride + offset % tensor->row_bytes;
}

static uint32_t address_of(const struct rpc_place *place, uint32_t offset)
{
    return (uint32_t)(uintptr_t)byte_of(place, offset);
}

/* The PE that holds the chip's tensors: the counterpart of this PE, which holds the first chip's. */
static uint32_t leader_of(const struct net_chip *chip)
{
    return net_description.pes[0].pe + chip->pe;
}

static bool lies_in(const struct net_tensor *tensor, uint32_t offset, uint32_t size)
{
    return offset <= size_of(tensor) && size <= size_of(tensor) - offset;
}

/* Tensors in DRAM or on another chip have no gaps between rows. */
bool rpc_put_bytes(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    if (place->tensor->in_dram) {
        return hal_write_pe(HAL_DRAM + place->chip->dram, address_of(place, offset), from, bytes);
    }
    if (place->chip != net_description.chips) {
        return hal_write_pe(leader_of(place->chip), address_of(place, offset), from, bytes);
    }
    for (uint32_t i = 0; i < bytes; i++) {
        *byte_of(place, offset + i) = from[i];
    }
    return true;
}

bool rpc_take_bytes(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes)
{
    if (place->tensor->in_dram) {
        return hal_read_pe(HAL_DRAM + place->chip->dram, address_of(place, offset), to, bytes);
    }
    if (place->chip != net_description.chips) {
        return hal_read_pe(leader_of(place->chip), address_of(place, offset), to, bytes);
    }
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] = *byte_of(place, offset + i);
    }
    return true;
}

/* Defaults without conversions. conversion/rpc_convert.c overrides them. */
__attribute__((weak, alias("rpc_put_bytes"))) bool rpc_put(
    const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes);
__attribute__((weak, alias("rpc_take_bytes"))) bool rpc_take(
    const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes);

static bool is_whole(const struct net_tensor *tensor, uint32_t offset, uint32_t bytes)
{
    return offset % host_bytes(tensor) == 0 && bytes % host_bytes(tensor) == 0;
}

struct rpc_answer rpc_write_input(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)payload;
    uint32_t index = get16(arguments), offset = get32(arguments + 4), bytes = size - 8;
    const uint32_t count = count_of_all(net_description.input_count);
    if (index >= count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, count);
    }
    const struct rpc_place input = place_of(net_description.inputs, net_description.input_count, index);
    if (!lies_in(input.tensor, offset, bytes)) {
        return rpc_refuse(RPC_OUT_OF_RANGE, size_of(input.tensor));
    }
    if (!is_whole(input.tensor, offset, bytes)) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    outputs_in_place = false; /* inputs and outputs may share memory */
    return rpc_put(&input, offset, arguments + 8, bytes) ? rpc_done(0) : rpc_refuse(RPC_NOT_WRITABLE, offset);
}

struct rpc_answer rpc_read_output(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe;
    uint32_t index = get16(arguments), bytes = get16(arguments + 2), offset = get32(arguments + 4);
    const uint32_t count = count_of_all(net_description.output_count);
    if (index >= count) {
        return rpc_refuse(RPC_NO_SUCH_TENSOR, count);
    }
    const struct rpc_place output = place_of(net_description.outputs, net_description.output_count, index);
    if (!outputs_in_place) {
        return rpc_refuse(RPC_NO_OUTPUT, 0);
    }
    if (bytes > RPC_PAYLOAD_BYTES || !is_whole(output.tensor, offset, bytes)) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (!lies_in(output.tensor, offset, bytes)) {
        return rpc_refuse(RPC_OUT_OF_RANGE, size_of(output.tensor));
    }
    return rpc_take(&output, offset, payload, bytes) ? rpc_done(bytes) : rpc_refuse(RPC_NO_OUTPUT, 0);
}

/* --- names and sizes --- */

static uint32_t count_of(uint32_t table)
{
    switch (table) {
    case INPUTS:
        return count_of_all(net_description.input_count);
    case OUTPUTS:
        return count_of_all(net_description.output_count);
    case LAYERS:
        return *net_layer_count;
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

static uint32_t put_entry(uint8_t *at, const char *name, uint32_t size, uint32_t left)
{
    uint32_t length = length_of(name);
    if (ENTRY_BYTES + length > left) {
        return 0;
    }
    put32(at, size);
    at[4] = (uint8_t)length;
    for (uint32_t i = 0; i < length; i++) {
        at[ENTRY_BYTES + i] = (uint8_t)name[i];
    }
    return ENTRY_BYTES + length;
}

static uint32_t put_tensor_or_layer(uint8_t *at, uint32_t table, uint32_t index, uint32_t left)
{
    if (table == LAYERS) {
        const struct net_layer *layer = net_layer(index);
        return put_entry(at, net_description.layer_names[index], layer->planes * layer->rows * layer->row_bytes, left);
    }
    const bool inputs = table == INPUTS;
    const uint32_t count = inputs ? net_description.input_count : net_description.output_count;
    const struct net_tensor *tensor = &(inputs ? net_description.inputs : net_description.outputs)[index % count];
    return put_entry(at, index < count ? tensor->name : "", size_of(tensor), left);
}

/* Put the table's entries from `first` on, as many as fit. Only the first frame's tensors have names. */
struct rpc_answer rpc_describe(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)size;
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
