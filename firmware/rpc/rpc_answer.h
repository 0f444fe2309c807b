/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the RPC server: requests and how they are answered. */
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
    RPC_UNKNOWN_REQUEST, /* address: its kind */
    RPC_BAD_ARGUMENTS,   /* address: how many bytes of them there were */
    RPC_NO_SUCH_TENSOR,  /* address: how many there are */
    RPC_OUT_OF_RANGE,    /* address: the tensor's size */
    RPC_NOT_READABLE,    /* address: the first byte asked for */
    RPC_NOT_WRITABLE,    /* address: the first byte asked for */
    RPC_NO_OUTPUT,
    RPC_NOT_OBSERVED,
    RPC_FAULT,           /* address: the instruction at fault */
    RPC_NOT_RUNNING,     /* address: the PE */
    RPC_OUT_OF_STEP,     /* address: the error code of the run that failed */
    RPC_RUNNING,         /* address: the number of the run that is under way */
    RPC_NO_SUCH_RUN,     /* address: the number of the last one */
    RPC_NOT_TRACED,
    RPC_STATUSES,
};

enum { RPC_HELLO = 1 }; /* the kind of request that opens a session */

enum {
    RPC_HEADER_BYTES = 8,
    RPC_REPLY_HEADER_BYTES = 16,
    RPC_PAYLOAD_BYTES = FRAME_PACKET_BYTES - RPC_REPLY_HEADER_BYTES,
    RPC_PIECE_BYTES = RPC_PAYLOAD_BYTES / 16 * 16, /* of another PE's memory at a time */
};

struct rpc_answer {
    uint32_t status;
    uint32_t address;
    uint32_t size; /* of the payload */
};

rpc_handler rpc_describe, rpc_write_input, rpc_read_output, rpc_run, rpc_read_layers;
rpc_handler rpc_read_memory, rpc_write_memory, rpc_read_pes;
rpc_handler rpc_start, rpc_stop, rpc_read_run, rpc_read_events, rpc_digest, rpc_stop_behind;

/* The place that a request's PE stands for: that PE, or a chip's DRAM. */
uint32_t rpc_place_of(uint32_t pe);

/* A new host is here: what an earlier one ran is not its business. */
void rpc_forget_run(void);

/* Whether the outputs are those of the last frame of a run that has succeeded. */
void rpc_outputs_are(bool in_place);

/* Have the states on all PEs begin anew with the next frame. */
struct rpc_answer rpc_forget_states(void);

/* Run a frame of the run that was started. False if there is none. */
bool rpc_run_frame(void);

/* Whether a run that was started is under way: what the host says meanwhile is answered between two frames. */
bool rpc_run_is_under_way(void);

/* A byte that has arrived in the midst of a frame of the network. */
void rpc_hear(uint8_t byte);

/* Whether there is something for rpc_next_frame(). */
bool rpc_link_has_news(void);

/* Take a byte from the link, if there is one and no request waits: the request that is whole then, or 0. Until
 * rpc_frame_done() it is the next one. `broken_off`, if not 0: whether the byte ends what breaks a run off. */
struct frame *rpc_next_frame(bool *broken_off);
void rpc_frame_done(void);

/* Send an answer, if it has any bytes, and do what waits for that. */
void rpc_send(uint8_t *packet, uint32_t size);

/* Have every PE observe its layers, or stop it. Done once all of them have taken it. */
struct rpc_answer rpc_observe(bool observe);

/* Up to `room` bytes of the records of a PE's layers, from the layer `first` on. */
struct rpc_answer rpc_copy_records(uint32_t pe, uint32_t first, uint8_t *to, uint32_t room);

/* The control block of a PE of the network: false if there is no such PE, or it runs nothing of this build. */
struct net_control;
bool rpc_read_control(uint32_t pe, struct net_control *control);

/* Whether every PE of the network runs it. */
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
