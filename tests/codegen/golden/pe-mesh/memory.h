/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of this program: offsets of buffers in the arena, and constants. */
#ifndef MEMORY_H
#define MEMORY_H

#include <assert.h>
#include <stdint.h>

#include "net.h"
#include "mac_array.h"

/* Inputs, outputs and intermediate tensors. Buffers share bytes if their steps do not overlap. */
enum {
    NET_LAYERS = 2,
    NET_ARENA_BYTES = 256,
    at_image_0 = 0, /* image [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 0 to 0 */
    at_sum_0 = 128, /* sum [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 0 to 1 */
    at_softmax_0 = 0, /* softmax [0:1, 0:5, 0:4, 0:6], 120 bytes, steps 1 to 1 */
};

/* Control block, records of layers, and arena of this PE. */
struct net_activations {
    struct net_control control;
    struct net_record records[2];
    uint8_t arena[NET_ARENA_BYTES];
};

extern struct net_activations net_activations;

#define ARENA(offset) ((void *)&net_activations.arena[offset])

struct net_constants {
    _Alignas(16) struct mac_array_command sum_0_command; /* sum: conv2d + add, 1x5x4x6 and 1x5x4x6 to 1x5x4x6; on mac_array, ends a chain */
    _Alignas(16) int8_t sum_0_weights[432]; /* weights */
    _Alignas(4) uint8_t sum_0_parameters[144]; /* biases, multipliers, shifts */
    _Alignas(4) int32_t sum_0_residual[8]; /* scales of the result and of the added operand */
    _Alignas(4) int32_t softmax_0_exp[256]; /* exp(-d) in Q0.31 for d steps below the largest */
};

#if UINTPTR_MAX == UINT32_MAX
static_assert(sizeof(struct net_constants) == 1728, "the plan counts on it");
#endif

extern const struct net_constants net_constants;

#endif
