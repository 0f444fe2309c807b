/* SPDX-License-Identifier: Apache-2.0 */
/* Control block and records of a PE: counters, digests and status of frames and layers. */
#include "crc32.h"
#include "net.h"

#include <string.h>

static struct hal_counters layer_begun;
static uint32_t recorded; /* number of the recorded frame, 1 for the first since reset */

void net_start(void)
{
    *net_control = (struct net_control){.layer_count = *net_layer_count, .events = (uint32_t)(uintptr_t)net_events};
    if (net_events != 0) {
        *net_events = (struct net_events){.capacity = net_event_capacity};
    }
    net_control->sign = net_sign;
}

/* A record sums up the pieces of a layer, from 0 in each frame. */
static void empty_records(void)
{
    for (uint32_t layer = 0; layer < *net_layer_count; layer++) {
        net_records[layer] = (struct net_record){0};
    }
}

static void begin(const struct net_state *state)
{
    if (state->initial != 0) {
        memcpy(state->data, state->initial, state->bytes);
    } else {
        memset(state->data, (int)state->fill, state->bytes);
    }
}

void net_restore(const struct net_state *states, uint32_t count)
{
    if (net_control->kept == 0) {
        for (uint32_t i = 0; i < count; i++) {
            begin(&states[i]);
        }
        net_control->kept = 1;
    }
}

void net_begin_layer(void)
{
    if (recorded != net_control->frames + 1) {
        recorded = net_control->frames + 1;
        empty_records();
    }
    hal_count(&layer_begun);
}

void net_event(uint32_t step)
{
    const uint64_t cycles = hal_cycles();
    struct net_event *const ring = (struct net_event *)(net_events + 1);
    const uint32_t number = net_events->written;
    ring[number & (net_event_capacity - 1)] =
        (struct net_event){(uint32_t)cycles, (uint16_t)(cycles >> 32), (uint16_t)step};
    net_events->written = number + 1;
}

static uint32_t sum(uint32_t before, uint64_t more)
{
    return more > UINT32_MAX - before ? UINT32_MAX : before + (uint32_t)more;
}

static uint32_t digest_of(const struct net_layer *layer)
{
    uint32_t digest = 0;
    for (uint32_t plane = 0; plane < layer->planes; plane++) {
        const uint8_t *row = layer->data + plane * layer->plane_stride;
        for (uint32_t i = 0; i < layer->rows; i++, row += layer->row_stride) {
            digest = crc32_update(digest, row, layer->row_bytes);
        }
    }
    return digest;
}

/* End the frame behind the layer that `observed` names. `fault_address` tells the host where the layer's output
 * begins. */
static int32_t stop_behind(uint32_t layer)
{
    const uint32_t told = net_control->observed;
    if ((told & 0xFFFF) != net_stop(layer, 1)) {
        return 0;
    }
    if (told != net_stop(layer, 1)) {
        net_control->observed = told - (1U << 16);
        return 0;
    }
    net_control->fault_address = (uint32_t)(uintptr_t)net_layer(layer)->data;
    return NET_STOPPED;
}

int32_t net_end_layer(uint32_t layer)
{
    struct hal_counters now;
    hal_count(&now);
    struct net_record *const record = &net_records[layer];
    record->digest = digest_of(net_layer(layer));
    record->cycles = sum(record->cycles, now.cycles - layer_begun.cycles);
    record->instructions = sum(record->instructions, now.instructions - layer_begun.instructions);
    record->asleep = sum(record->asleep, now.asleep - layer_begun.asleep);
    return stop_behind(layer);
}
