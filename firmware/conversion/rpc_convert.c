/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of inputs and outputs on their way between host and network, piece by piece. */
#include "rpc_tensor.h"

enum { PIECE_BYTES = 64 };

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* The network's number of the element with this number at the host. */
static uint32_t number_of(const struct net_conversion *by, uint32_t number)
{
    return by->planes != 0 ? number % by->plane * by->planes + number / by->plane : number;
}

/* Put elements from number `first` at the host on, one by one if they are not adjacent in the network. */
static bool put_piece(const struct rpc_place *place, uint32_t first, const uint8_t *from, uint32_t count)
{
    const struct net_conversion *by = place->tensor->conversion;
    const uint32_t together = by->planes != 0 ? 1 : count;
    bool there = true;
    for (uint32_t i = 0; there && i < count; i += together) {
        there = rpc_put_bytes(place, number_of(by, first + i), from + i, together);
    }
    return there;
}

static bool take_piece(const struct rpc_place *place, uint32_t first, uint8_t *to, uint32_t count)
{
    const struct net_conversion *by = place->tensor->conversion;
    const uint32_t together = by->planes != 0 ? 1 : count;
    bool there = true;
    for (uint32_t i = 0; there && i < count; i += together) {
        there = rpc_take_bytes(place, number_of(by, first + i), to + i, together);
    }
    return there;
}

bool rpc_put(const struct rpc_place *place, uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    const struct net_conversion *by = place->tensor->conversion;
    uint8_t piece[PIECE_BYTES];
    if (by == 0) {
        return rpc_put_bytes(place, offset, from, bytes);
    }
    const uint32_t first = offset / by->host_bytes, count = bytes / by->host_bytes;
    for (uint32_t done = 0; done < count; done += PIECE_BYTES) {
        const uint32_t part = smaller(count - done, PIECE_BYTES);
        net_convert(by, first + done, from + done * by->host_bytes, piece, part);
        if (!put_piece(place, first + done, piece, part)) {
            return false;
        }
    }
    return true;
}

bool rpc_take(const struct rpc_place *place, uint32_t offset, uint8_t *to, uint32_t bytes)
{
    const struct net_conversion *by = place->tensor->conversion;
    uint8_t piece[PIECE_BYTES];
    if (by == 0) {
        return rpc_take_bytes(place, offset, to, bytes);
    }
    const uint32_t first = offset / by->host_bytes, count = bytes / by->host_bytes;
    for (uint32_t done = 0; done < count; done += PIECE_BYTES) {
        const uint32_t part = smaller(count - done, PIECE_BYTES);
        if (!take_piece(place, first + done, piece, part)) {
            return false;
        }
        net_convert(by, first + done, piece, to + done * by->host_bytes, part);
    }
    return true;
}
