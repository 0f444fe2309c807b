/* Inside the RPC server: requests and how they are answered. */
#ifndef RPC_ANSWER_H
#define RPC_ANSWER_H

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
    RPC_STATUSES,
};

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

/* Carry out a request. `payload` may overlap the arguments: read them all before writing there. */
typedef struct rpc_answer rpc_handler(const uint8_t *arguments, uint32_t size, uint8_t *payload);

rpc_handler rpc_describe, rpc_write_input, rpc_read_output, rpc_run, rpc_read_layers;
rpc_handler rpc_read_memory, rpc_write_memory;

/* A new host is here: what an earlier one ran is not its business. */
void rpc_forget_run(void);

static inline struct rpc_answer rpc_done(uint32_t size)
{
    return (struct rpc_answer){.status = RPC_OK, .size = size};
}

static inline struct rpc_answer rpc_refuse(enum rpc_status status, uint32_t address)
{
    return (struct rpc_answer){.status = (uint32_t)status, .address = address};
}

#endif
