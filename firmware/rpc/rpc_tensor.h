/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the RPC server: where an input or output of a frame lies. */
#ifndef RPC_TENSOR_H
#define RPC_TENSOR_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"

/* A frame's own of a tensor that frames have alike, and the chip that it is on. */
struct rpc_place {
    const struct net_tensor *tensor;
    const struct net_chip *chip;
    uint8_t *data;
};

/* Bytes of it, as the network has them. */
bool rpc_put_bytes(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes);
bool rpc_take_bytes(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes);

/* Bytes of it, as the host has them. */
bool rpc_put(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes);
bool rpc_take(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes);

#endif
