/* Inside the RPC server: requests and how they are answered. */
#ifndef RPC_ANSWER_H
#define RPC_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "frame.h"

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
    RPC_STATUSES,
};

enum { RPC_HELLO = 1 }; /* the kind of request that opens a session */

enum {
    RPC_HEADER_BYTES = 8,
    RPC_REPLY_HEADER_BYTES = 16,
    RPC_PAYLOAD_BYTES = FRAME_PACKET_BYTES - RPC_REPLY_HEADER_BYTES,
};

struct rpc_answer {
    uint32_t status;
    uint32_t address;
    uint32_t size; /* of the payload */
};

/* Carry out a request to `pe`. `payload` may overlap the arguments: read them all before writing there. */
typedef struct rpc_answer rpc_handler(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload);

rpc_handler rpc_describe, rpc_write_input, rpc_read_output, rpc_run, rpc_read_layers;
rpc_handler rpc_read_memory, rpc_write_memory, rpc_read_pes;

/* A new host is here: what an earlier one ran is not its business. */
void rpc_forget_run(void);

/* Have every PE observe its layers, or stop it. Done once all of them have taken it. */
struct rpc_answer rpc_observe(bool observe);

/* Up to `room` bytes of the records of a PE's layers, from the layer `first` on. */
struct rpc_answer rpc_copy_records(uint32_t pe, uint32_t first, uint8_t *to, uint32_t room);

static inline struct rpc_answer rpc_done(uint32_t size)
{
    return (struct rpc_answer){.status = RPC_OK, .size = size};
}

static inline struct rpc_answer rpc_refuse(enum rpc_status status, uint32_t address)
{
    return (struct rpc_answer){.status = (uint32_t)status, .address = address};
}

#endif
