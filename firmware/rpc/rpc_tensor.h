/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the RPC server: the place of a frame's input or output. */
#ifndef RPC_TENSOR_H
#define RPC_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"

/* Tensor of one frame: the description shared by all frames, the chip, the address. */
struct rpc_place {
    const struct net_tensor *tensor;
    const struct net_chip *chip;
    uint8_t *data;
};

/* Copy bytes to or from the tensor as the network has them. */
bool rpc_put_bytes(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes);
bool rpc_take_bytes(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes);

/* Copy bytes to or from the tensor as the host has them. */
bool rpc_put(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes);
bool rpc_take(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes);

#endif
