/* The RPC server of the root PE: what the host may ask over the link (docs/protocol.md). */
#ifndef RPC_H
#define RPC_H

#include <stdbool.h>
#include <stdint.h>

/* What an observed run leaves behind of each layer. Counters that do not fit stay at their largest value. */
struct rpc_layer_record {
    uint32_t digest; /* CRC-32 of the output's bytes */
    uint32_t cycles;
    uint32_t instructions;
    uint32_t asleep;
};

/* A stretch of memory the host may read, and may write if it is `writable`. */
struct rpc_region {
    uint8_t *start;
    uint32_t size;
    bool writable;
};

/* The generated project provides these three; `rpc_layer_records` has net_description.layer_count entries, one at
 * least. */
extern struct rpc_layer_record rpc_layer_records[];
extern const struct rpc_region rpc_regions[];
extern const uint32_t rpc_region_count;

/* Answer the host for ever. Call it on the PE whose hal_link_present() is true, after hal_init(). */
_Noreturn void rpc_serve(void);

/* Tell the host, unasked, that this PE has stopped; for fault handlers. Safe at any point of the program, silent on a
 * PE without a link. `code`: the Configurable Fault Status Register; `pc`: the instruction at fault; `address`: the
 * data address at fault, 0 if unknown. */
void rpc_report_fault(uint32_t code, uint32_t pc, uint32_t address);

#endif
