/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of the RPC server: requests, statuses, replies. */
#ifndef RPC_ANSWER_H
#define RPC_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"
#include "rpc.h"

enum rpc_status {
    RPC_OK,
    RPC_OTHER_PROTOCOL,  /* address: the version spoken here */
    RPC_NO_SESSION,
    RPC_OTHER_PE,        /* address: this PE */
    RPC_UNKNOWN_REQUEST, /* address: the request's kind */
    RPC_BAD_ARGUMENTS,   /* address: the number of bytes of arguments */
    RPC_NO_SUCH_TENSOR,  /* address: the number of inputs, outputs or layers */
    RPC_OUT_OF_RANGE,    /* address: the tensor's size */
    RPC_NOT_READABLE,    /* address: the first byte asked for */
    RPC_NOT_WRITABLE,    /* address: the first byte asked for */
    RPC_NO_OUTPUT,
    RPC_NOT_OBSERVED,
    RPC_FAULT,           /* address: the instruction at fault */
    RPC_NOT_RUNNING,     /* address: the PE */
    RPC_OUT_OF_STEP,     /* address: the error code of the failed run */
    RPC_RUNNING,         /* address: the number of the run under way */
    RPC_NO_SUCH_RUN,     /* address: the number of the last run */
    RPC_NOT_TRACED,
    RPC_STATUSES,
};

enum { RPC_HELLO = 1 }; /* kind of the request that opens a session */

enum {
    RPC_HEADER_BYTES = 8,
    RPC_REPLY_HEADER_BYTES = 16,
    RPC_PAYLOAD_BYTES = FRAME_PACKET_BYTES - RPC_REPLY_HEADER_BYTES,
    RPC_PIECE_BYTES = RPC_PAYLOAD_BYTES / 16 * 16, /* read at a time from another PE's memory */
};

struct rpc_answer {
    uint32_t status;
    uint32_t address;
    uint32_t size; /* of the payload */
};

rpc_handler rpc_describe, rpc_write_input, rpc_read_output, rpc_run, rpc_read_layers;
rpc_handler rpc_read_memory, rpc_write_memory, rpc_read_pes;
rpc_handler rpc_start, rpc_stop, rpc_read_run, rpc_read_events, rpc_digest, rpc_stop_behind;

/* HAL number of the PE or DRAM that a request's PE number stands for. */
uint32_t rpc_place_of(uint32_t pe);

/* Forget the last run, when another session opens. */
void rpc_forget_run(void);

/* Set whether the outputs in place belong to the last frame of a successful run. */
void rpc_outputs_are(bool in_place);

/* Make the states on all PEs start anew with the next frame. */
struct rpc_answer rpc_forget_states(void);

/* Run the next frame of the run under way. False if no run is. */
bool rpc_run_frame(void);

/* True while a run begun by START is under way. Requests are answered between its frames. */
bool rpc_run_is_under_way(void);

/* Take a byte that has arrived during a frame of the network. */
void rpc_hear(uint8_t byte);

/* True if rpc_next_frame() has input. */
bool rpc_link_has_news(void);

/* Read a byte from the link, if one has arrived and no complete request is waiting. Returns the complete request, the
 * same until rpc_frame_done(), or 0. Sets `*broken_off`, unless `broken_off` is 0, if the byte breaks a run off. */
struct frame *rpc_next_frame(bool *broken_off);
void rpc_frame_done(void);

/* Send an answer, unless `size` is 0, then restart the board if the answer was to RESET. */
void rpc_send(uint8_t *packet, uint32_t size);

/* Make every PE observe its layers, or stop observing. Returns once every PE has the setting. */
struct rpc_answer rpc_observe(bool observe);

/* Copy a PE's layer records, from layer `first` on, up to `room` bytes. */
struct rpc_answer rpc_copy_records(uint32_t pe, uint32_t first, uint8_t *to, uint32_t room);

/* Read the control block of a PE of the network. False if the network has no such PE, or the PE does not run this
 * build. */
struct net_control;
bool rpc_read_control(uint32_t pe, struct net_control *control);

/* True if every PE of the network runs this build. */
bool rpc_all_run(void);

static inline struct rpc_answer rpc_done(uint32_t size)
{
    return (struct rpc_answer){.status = RPC_OK, .size = size};
}

static inline struct rpc_answer rpc_refuse(enum rpc_status status, uint32_t address)
{
    return (struct rpc_answer){.status = (uint32_t)status, .address = address};
}

#endif
