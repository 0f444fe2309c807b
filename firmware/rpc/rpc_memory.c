/* SPDX-License-Identifier: Apache-2.0 */
/* Requests about memory. On this PE only the regions that the project declares are accessible. */
#include "bytes.h"
#include "hal.h"
#include "rpc.h"
#include "rpc_answer.h"

static bool lies_in(const struct rpc_region *region, uintptr_t address, uint32_t size)
{
    uintptr_t start = (uintptr_t)region->start;
    return address >= start && address - start <= region->size && size <= region->size - (address - start);
}

static bool allowed(uintptr_t address, uint32_t size, bool to_write)
{
    for (uint32_t i = 0; i < rpc_region_count; i++) {
        const struct rpc_region *region = &rpc_regions[i];
        if (lies_in(region, address, size) && (region->writable || !to_write)) {
            return true;
        }
    }
    return !to_write && hal_may_be_read((uint32_t)address, size);
}

/* PE number in requests for the first chip's DRAM. Add n for chip n. */
enum { DRAM_OF_CHIP = 0x8000 };

uint32_t rpc_place_of(uint32_t pe)
{
    return pe >= DRAM_OF_CHIP ? HAL_DRAM + (pe - DRAM_OF_CHIP) : pe;
}

/* Other PEs' memory is readable wherever there is memory. */
static struct rpc_answer read_other(uint32_t pe, uint32_t address, uint32_t bytes, uint8_t *payload)
{
    if (hal_read_pe(rpc_place_of(pe), address, payload, bytes)) {
        return rpc_done(bytes);
    }
    bool pe_answers = hal_read_pe(rpc_place_of(pe), 0, payload, 1);
    return pe_answers ? rpc_refuse(RPC_NOT_READABLE, address) : rpc_refuse(RPC_OTHER_PE, hal_pe());
}

struct rpc_answer rpc_read_memory(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    uint32_t address = get32(arguments), bytes = get32(arguments + 4);
    if (bytes > RPC_PAYLOAD_BYTES) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, size);
    }
    if (pe != hal_pe()) {
        return read_other(pe, address, bytes, payload);
    }
    if (!allowed(address, bytes, false)) {
        return rpc_refuse(RPC_NOT_READABLE, address);
    }
    const uint8_t *memory = (const uint8_t *)(uintptr_t)address;
    for (uint32_t i = 0; i < bytes; i++) {
        payload[i] = memory[i];
    }
    return rpc_done(bytes);
}

/* The host may write to a DRAM, but not to the memory of other PEs. */
static struct rpc_answer write_dram(uint32_t pe, uint32_t address, const uint8_t *from, uint32_t bytes)
{
    if (pe < DRAM_OF_CHIP) {
        return rpc_refuse(RPC_OTHER_PE, hal_pe());
    }
    return hal_write_pe(rpc_place_of(pe), address, from, bytes) ? rpc_done(0) : rpc_refuse(RPC_NOT_WRITABLE, address);
}

struct rpc_answer rpc_write_memory(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)payload;
    uint32_t address = get32(arguments), bytes = size - 4;
    if (pe != hal_pe()) {
        return write_dram(pe, address, arguments + 4, bytes);
    }
    if (!allowed(address, bytes, true)) {
        return rpc_refuse(RPC_NOT_WRITABLE, address);
    }
    uint8_t *memory = (uint8_t *)(uintptr_t)address;
    for (uint32_t i = 0; i < bytes; i++) {
        memory[i] = arguments[4 + i];
    }
    return rpc_done(0);
}
