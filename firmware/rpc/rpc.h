/* SPDX-License-Identifier: Apache-2.0 */
/* RPC server of the root PE: answers the host's requests over the link (docs/protocol.md). */
#ifndef RPC_H
#define RPC_H

#include <stdbool.h>
#include <stdint.h>

/* Memory that the host may read, and may write if `writable`. */
struct rpc_region {
    uint8_t *start;
    uint32_t size;
    bool writable;
};

/* Handler of a request to `pe`. `payload` may overlap `arguments`: read all arguments before writing the payload. */
struct rpc_answer;
typedef struct rpc_answer rpc_handler(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload);

/* Provided by the generated project. `rpc_events` is rpc_read_events() in builds that trace, else 0. `rpc_states` is
 * rpc_reset_states() in networks with states, else 0. */
extern const struct rpc_region rpc_regions[];
extern const uint32_t rpc_region_count;
extern rpc_handler *const rpc_events;
extern rpc_handler *const rpc_states;
rpc_handler rpc_read_events, rpc_reset_states;

/* Loaded memory that never changes: program, constants, this PE's own data. */
enum { RPC_LOADED = 3 };
struct rpc_stretch {
    const uint8_t *start;
    const uint8_t *end;
};
extern const struct rpc_stretch rpc_loaded[RPC_LOADED];

/* Answer the host for ever. Call on the PE whose hal_link_present() is true, after hal_init(). */
_Noreturn void rpc_serve(void);

/* Carry out the request in the first `size` bytes of `packet` and put the reply in its place, with at least four bytes
 * of room behind it. Returns the reply's size; 0 if no reply is due. */
uint32_t rpc_answer(uint8_t *packet, uint32_t size);

/* True if the host has broken the run off (docs/protocol.md). For waits during a run, on the PE that answers the host.
 * Takes every byte that has arrived, if this PE has the link. */
bool rpc_break(void);

/* True if this byte from the link completes the sequence that breaks a run off. */
bool rpc_break_ends(uint8_t byte);

/* Send the host a line of text, at most 120 bytes, without a newline. For drivers and for debugging: the call takes as
 * long as the line on the link. No effect on a PE without a link. Not for exception handlers. */
void rpc_log(const char *line);

/* Record in the control block that this PE has stopped, and send the host a fault packet unless this PE has no link.
 * For fault handlers: safe at any point of the program. `code`: the Configurable Fault Status Register. `pc`: the
 * instruction at fault. `address`: the data address at fault, 0 if unknown. */
void rpc_report_fault(uint32_t code, uint32_t pc, uint32_t address);

#endif
