/* SPDX-License-Identifier: Apache-2.0 */
/* The RPC server of the root PE: what the host may ask over the link (docs/protocol.md). */
#ifndef RPC_H
#define RPC_H

#include <stdbool.h>
#include <stdint.h>

/* A stretch of memory the host may read, and may write if it is `writable`. */
struct rpc_region {
    uint8_t *start;
    uint32_t size;
    bool writable;
};

/* Carry out a request to `pe`. `payload` may overlap the arguments: read them all before writing there. */
struct rpc_answer;
typedef struct rpc_answer rpc_handler(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload);

/* The generated project provides these: `rpc_events` is rpc_read_events() in builds that trace, else 0; `rpc_states` is
 * rpc_reset_states() in networks that keep something from frame to frame, else 0. */
extern const struct rpc_region rpc_regions[];
extern const uint32_t rpc_region_count;
extern rpc_handler *const rpc_events;
extern rpc_handler *const rpc_states;
rpc_handler rpc_read_events, rpc_reset_states;

/* What was loaded and nothing changes: the program, its constants, what this PE has of its own. */
enum { RPC_LOADED = 3 };
struct rpc_stretch {
    const uint8_t *start;
    const uint8_t *end;
};
extern const struct rpc_stretch rpc_loaded[RPC_LOADED];

/* Answer the host for ever. Call it on the PE whose hal_link_present() is true, after hal_init(). */
_Noreturn void rpc_serve(void);

/* Carry out the request that the first `size` bytes of `packet` are, and put the reply there, with four bytes of room behind
 * it at least. Its size; 0 if no reply is due. */
uint32_t rpc_answer(uint8_t *packet, uint32_t size);

/* Whether the host has broken a run off (docs/protocol.md): for waits in a run on the
 * PE that the host talks to. Takes all that has arrived over the link, where this PE has it. */
bool rpc_break(void);

/* Whether this byte from the link ends what breaks a run off. */
bool rpc_break_ends(uint8_t byte);

/* Tell the host a line of text, 120 bytes at most, without a newline. For drivers and for debugging: the line takes its
 * time on the link. Silent on a PE without a link; not for exceptions. */
void rpc_log(const char *line);

/* Note in the control block, and tell the host unasked, that this PE has stopped; for fault handlers. Safe at any point
 * of the program, silent on a PE without a link. `code`: the Configurable Fault Status Register; `pc`: the instruction at
 * fault; `address`: the data address at fault, 0 if unknown. */
void rpc_report_fault(uint32_t code, uint32_t pc, uint32_t address);

#endif
