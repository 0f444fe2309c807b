/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this program: offsets of buffers in the arena, and constants. */
#ifndef MEMORY_H
#define MEMORY_H

#include <assert.h>
#include <stdint.h>

#include "net.h"

/* Inputs, outputs and intermediate tensors. Buffers share bytes if their steps do not overlap. */
enum {
    NET_LAYERS = 3,
    NET_ARENA_BYTES = 384,
    at_conv_0 = 128, /* conv [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 0 to 1 */
    at_image_0 = 0, /* image [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 0 to 1 */
    at_sum_0 = 256, /* sum [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 1 to 2 */
    at_softmax_0 = 0, /* softmax [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 2 to 2 */
};

/* Control block, records of layers, and arena of this PE. */
struct net_activations {
    struct net_control control;
    struct net_record records[3];
    uint8_t arena[NET_ARENA_BYTES];
};

extern struct net_activations net_activations;

#define ARENA(offset) ((void *)&net_activations.arena[offset])

struct net_constants {
    _Alignas(4) int8_t conv_0_weights[324]; /* weights [output channels at a time][tap][channel of these], then the other channels [channel][tap] */
    _Alignas(4) int32_t conv_0_multipliers[6]; /* multipliers of the requantisation, in Q0.31 */
    _Alignas(4) int32_t conv_0_addends[6]; /* addends to the scaled sums: zero point and rounding */
    _Alignas(4) int32_t softmax_0_exp[256]; /* exp(-d) in Q0.31 for d steps below the largest */
    _Alignas(4) int8_t conv_0_shifts[6]; /* shifts to the right */
};

#if UINTPTR_MAX == UINT32_MAX
static_assert(sizeof(struct net_constants) == 1404, "the plan counts on it");
#endif

extern const struct net_constants net_constants;

#endif
