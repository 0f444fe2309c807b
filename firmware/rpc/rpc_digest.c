/* SPDX-License-Identifier: Apache-2.0 */
/* Digests of loaded memory. The host compares them to detect changes. */
#include "bytes.h"
#include "digest.h"
#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

/* Limit of one request, because the server answers no other request meanwhile. */
enum { MOST_BYTES = 1 << 20, DIGEST_SIZE = 8, WORD = 4 };

static bool is_loaded(uintptr_t address, uint32_t bytes)
{
    for (uint32_t i = 0; i < RPC_LOADED; i++) {
        const uintptr_t start = (uintptr_t)rpc_loaded[i].start, end = (uintptr_t)rpc_loaded[i].end;
        if (address >= start && address <= end && bytes <= end - address) {
            return true;
        }
    }
    return false;
}

/* Add memory of another PE or of a DRAM, piece by piece through `room`. */
static bool add_other(uint32_t place, uint32_t address, uint32_t bytes, uint8_t *room, uint64_t *digest)
{
    for (uint32_t at = 0; at < bytes; at += RPC_PIECE_BYTES) {
        const uint32_t left = bytes - at, piece = left < RPC_PIECE_BYTES ? left : RPC_PIECE_BYTES;
        if (!hal_read_pe(place, address + at, room, piece)) {
            return false;
        }
        *digest = digest_update(*digest, room, piece);
    }
    return true;
}

struct rpc_answer rpc_digest(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    const uint32_t address = get32(arguments), bytes = get32(arguments + 4);
    uint64_t digest = DIGEST_START;
    if (bytes > MOST_BYTES || address % WORD != 0) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (pe != hal_pe()) {
        if (!add_other(rpc_place_of(pe), address, bytes, payload, &digest)) {
            return rpc_refuse(RPC_NOT_READABLE, address);
        }
    } else if (is_loaded(address, bytes)) {
        digest = digest_update(digest, (const uint8_t *)(uintptr_t)address, bytes);
    } else {
        return rpc_refuse(RPC_NOT_READABLE, address);
    }
    put64(payload, digest);
    return rpc_done(DIGEST_SIZE);
}
