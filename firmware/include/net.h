/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled network, as the rest of the firmware sees it. The generated project/net/net.c provides its code and
 * tables, firmware/rpc/net_control.c the accounts of what it does. */
#ifndef NET_H
#define NET_H

#include <stdint.h>

#include "hal.h"

enum net_conversion_kind { NET_QUANTIZE, NET_DEQUANTIZE, NET_LOOK_UP, NET_MOVE };

struct net_scale {
    float offset;
    float step;
};

/* An input that the host has otherwise than the network, or an output: elements of `host_bytes` there, bytes here. With
 * `planes` given, of `plane` elements each, the host has plane after plane; here the planes' elements alternate. */
struct net_conversion {
    enum net_conversion_kind kind;
    uint32_t host_bytes;
    const uint8_t *table;           /* NET_LOOK_UP: by the byte that is read */
    const struct net_scale *scales; /* else; of `channels`, each of which changes after so many elements */
    uint32_t channels;
    uint32_t channel_elements;
    int32_t zero_point;
    bool away;      /* halves are rounded away from zero, not to even */
    bool is_signed; /* what NET_DEQUANTIZE reads */
    uint32_t planes;
    uint32_t plane;
};

/* An input or output: `rows` rows of `row_bytes`, `stride` bytes apart. It may lie in DRAM, and `data` there.
 * That is the first frame's; where a run takes several, that of frame n lies `frame_stride` * n bytes behind it, or
 * `frame_offsets[n]` if those are given. */
struct net_tensor {
    const char *name;
    uint8_t *data;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t stride;
    bool in_dram;
    uint32_t frame_stride;
    const uint32_t *frame_offsets;
    const struct net_conversion *conversion; /* 0: the host has it as it lies here */
};

/* What a layer leaves behind on this PE: `planes` times `rows` rows of `row_bytes`. */
struct net_layer {
    const uint8_t *data;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t row_stride;
    uint32_t planes;
    uint32_t plane_stride;
};

/* A PE that runs a part of the network, and where its control block lies in its memory. */
struct net_pe {
    uint32_t pe;
    uint32_t control;
};

/* A chip that runs the network as the first one does: what is added to the numbers of that one's PEs and DRAM. */
struct net_chip {
    uint32_t pe;
    uint32_t dram;
};

/* What the host can learn about the network. Only the PE that it talks to has this. Where a run takes several frames on
 * each of several chips, the host counts the inputs and outputs of the first chip's frames in turn, then the next's. */
struct net_description {
    const char *model;
    const char *board;
    uint8_t build_id[16];
    uint16_t input_count; /* of a frame, as output_count */
    uint16_t output_count;
    uint16_t frame_count; /* on each chip */
    uint16_t pe_count;    /* likewise */
    uint16_t chip_count;
    uint16_t link_bytes; /* that the board's link holds until they are read */
    const struct net_tensor *inputs;
    const struct net_tensor *outputs;
    const char *const *layer_names;
    const struct net_pe *pes;     /* of the first chip, this one first */
    const struct net_chip *chips; /* this PE's first */
};

/* How a PE is doing. It begins the PE's activations, so that the root can read it, and set `observed`, from afar. */
struct net_control {
    uint32_t sign; /* net_sign, once the PE runs */
    uint32_t layer_count;
    volatile uint32_t observed; /* not 0: layers run by themselves and are recorded, as far as net_stop() says */
    uint32_t frames;
    struct hal_counters counters; /* at the end of the last frame */
    int32_t status;               /* of the last frame: 0, or the error code of what failed */
    uint32_t fault_status;        /* the core's Configurable Fault Status Register, if it has stopped */
    uint32_t fault_pc;
    uint32_t fault_address;
    uint32_t events; /* where struct net_events lies; 0: none are written */
    volatile uint32_t kept; /* not 0: states are as the last frame left them; else they begin anew, also by the root */
};

enum {
    NET_STOPPED = -32, /* the error code of a frame that ended where net_stop() said */
    NET_MOST_LAYERS = 0xFFFF - 2,
};

/* The word for an observed frame that ends behind a layer, once it has come to the end of so many pieces of it. */
static inline uint32_t net_stop(uint32_t layer, uint32_t pieces)
{
    return (pieces - 1) << 16 | (layer + 2);
}

/* What an observed frame leaves behind of each layer. Counters that do not fit stay at their largest value. */
struct net_record {
    uint32_t digest; /* CRC-32 of the output's bytes */
    uint32_t cycles;
    uint32_t instructions;
    uint32_t asleep;
};

/* A part of a state, which stays here from frame to frame: `bytes` of it, which begin as `initial`, or if that is 0 as
 * `fill` each. */
struct net_state {
    uint8_t *data;
    const uint8_t *initial;
    uint32_t bytes;
    uint32_t fill;
};

/* What happened here and when, in builds that trace: a step of the frame began, or (NET_FRAME_END) the frame was over. */
struct net_event {
    uint32_t cycles; /* since reset, the lower 32 bits */
    uint16_t cycles_high;
    uint16_t step;
};

enum { NET_FRAME_END = 0xFFFF };

/* The last `capacity` events, a power of two of them: the n-th is at n modulo `capacity` behind this. */
struct net_events {
    uint32_t written; /* since reset */
    uint32_t capacity;
};

_Static_assert(sizeof(struct net_event) == 8 && sizeof(struct net_events) == 8, "the protocol says so");
_Static_assert(sizeof(struct net_control) == 64, "the plan counts on it");
_Static_assert(sizeof(struct net_record) == 16, "the plan counts on it");
_Static_assert(sizeof(void *) != 4 || sizeof(struct net_state) == 16, "the plan counts on it");

/* A step of a frame, in programs that are a table of steps. What computes says in `flag` how many layers further the
 * next one is, as a signed byte: 0 if both are pieces of one layer. */
enum net_step_kind {
    NET_END,
    NET_WAIT,    /* for `flag`, `count` times */
    NET_SEND,    /* the messages from the descriptor at `what` on */
    NET_SIGNAL,  /* count flag `flag` of PE `count`; `what`: the message's tag and bits of net_signal */
    NET_SIGNALS, /* the same of `count` PEs; the step behind it says which */
    NET_TO,      /* `what`: the list of struct noc_destination, or the place of a page */
    NET_FETCH,   /* begin to fetch a page of `count` bytes, from `what` on in DRAM, to where the step behind it says */
    NET_PAGE,    /* go on at `what`, once the `count` pages that are fetched, none or one, are there */
    NET_PATCH,   /* `what` becomes word `flag` of the command of the next step that is another */
    NET_RESTORE, /* the `count` parts of states from `what` on */
    NET_JOIN,    /* wait for what was submitted */
    NET_AGAIN,   /* `count` steps from number `what` on, none of which is of this kind */
    NET_RUN,     /* an accelerator's chain, whose first layer is the `count` commands from `what` on */
    NET_SUBMIT,  /* the same, and only start it */
    NET_LINKED,  /* a layer of the chain before */
    NET_DRIVE,   /* a layer of an accelerator: driver's function number `count`, with the arguments from `what` on */
    NET_CALL,    /* a layer on the core: function number `count`, likewise */
    NET_ALSO,    /* another function on the core for the layer before */
};

enum net_signal {
    NET_SIGNAL_SENT = 1 << 16,      /* this PE's flag 0 counts too */
    NET_SIGNAL_THIS_CHIP = 1 << 17, /* PEs count from the first of this chip */
};

struct net_step {
    uint8_t kind;
    uint8_t flag;
    uint16_t count;
    uint32_t what;
};

_Static_assert(sizeof(struct net_step) == 8, "the plan counts on it");

/* An argument of a function that a table calls: a number, or the address of an operand. */
struct net_argument {
    uint32_t word;
};

extern const struct net_description net_description;
extern const uint32_t net_sign; /* says of which build this is; not 0 */
extern const uint32_t *const net_layer_count;
extern const struct net_layer net_layers[];
extern const uint16_t *const net_layer_numbers; /* of each layer, which of net_layers: those of several frames may be one; 0: its own */
extern struct net_control *const net_control;
extern struct net_record *const net_records; /* right behind the control block */
extern struct net_events *const net_events;  /* 0 in builds that do not trace */
extern const uint32_t net_event_capacity;

static inline const struct net_layer *net_layer(uint32_t number)
{
    return &net_layers[net_layer_numbers != 0 ? net_layer_numbers[number] : number];
}

/* One frame: inputs in place before, outputs in place after. 0, or the error code of what failed. */
int32_t net_run(void);

/* `count` elements from number `first` on, as they arrive or as they leave. */
void net_convert(const struct net_conversion *by, uint32_t first, const uint8_t *from, uint8_t *to, uint32_t count);

/* --- for net_convert(), each for conversions of one kind --- */

void net_quantize(const struct net_conversion *by, uint32_t first, const uint8_t *from, uint8_t *to, uint32_t count);
void net_dequantize(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);
void net_look_up(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);
void net_move(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);

/* --- for the PE's main loop --- */

/* Begin the control block. */
void net_start(void);

/* Run a frame and keep account of it. Its status. */
int32_t net_frame(void);

/* --- for net_run() --- */

static inline int32_t net_observed(void)
{
    return net_control->observed != 0;
}

/* Around each layer of an observed frame, or each piece of one: before it begins, and while its output is in place. 0, or
 * NET_STOPPED if the frame is to end here. */
void net_begin_layer(void);
int32_t net_end_layer(uint32_t layer);

/* Let these parts of states begin anew, unless they are as the last frame left them. */
void net_restore(const struct net_state *states, uint32_t count);

/* In builds that trace: before each step, and at the frame's end. */
void net_event(uint32_t step);

static inline void net_end_frame(void)
{
    net_event(NET_FRAME_END);
}

#endif
