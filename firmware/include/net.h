/* SPDX-License-Identifier: Apache-2.0 */
/* Interface between the compiled network and the rest of the firmware. The generated project/net/net.c provides the
 * network's code and tables, firmware/rpc/net_control.c its counters and records. */
#ifndef NET_H
#define NET_H

#include <stdint.h>

#include "hal.h"

enum net_conversion_kind { NET_QUANTIZE, NET_DEQUANTIZE, NET_LOOK_UP, NET_MOVE };

struct net_scale {
    float offset;
    float step;
};

/* Conversion of an input or output between the host's elements of `host_bytes` and the network's bytes. If `planes` is
 * not 0, the host sends plane after plane of `plane` elements each; the network interleaves the planes. */
struct net_conversion {
    enum net_conversion_kind kind;
    uint32_t host_bytes;
    const uint8_t *table;           /* NET_LOOK_UP: indexed by the byte to convert */
    const struct net_scale *scales; /* else one for each of `channels`, of `channel_elements` elements in a row */
    uint32_t channels;
    uint32_t channel_elements;
    int32_t zero_point;
    bool away;      /* round halves away from zero, not to even */
    bool is_signed; /* NET_DEQUANTIZE: from int8, else from uint8 */
    uint32_t planes;
    uint32_t plane;
};

/* Input or output: `rows` rows of `row_bytes`, `stride` bytes apart, at `data`, an address in DRAM if `in_dram`. `data`
 * is the address of frame 0. If a run takes several frames, frame n lies `frame_stride` * n bytes behind it, or
 * `frame_offsets[n]` bytes if `frame_offsets` is not 0. */
struct net_tensor {
    const char *name;
    uint8_t *data;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t stride;
    bool in_dram;
    uint32_t frame_stride;
    const uint32_t *frame_offsets;
    const struct net_conversion *conversion; /* 0: the host's bytes are the network's */
};

/* Output of a layer on this PE: `planes` planes of `rows` rows of `row_bytes`. */
struct net_layer {
    const uint8_t *data;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t row_stride;
    uint32_t planes;
    uint32_t plane_stride;
};

/* PE that runs a part of the network, and the address of its control block in its memory. */
struct net_pe {
    uint32_t pe;
    uint32_t control;
};

/* Chip that runs the network in the same way as the first chip: offsets from the first chip's PE and DRAM numbers. */
struct net_chip {
    uint32_t pe;
    uint32_t dram;
};

/* Description of the network for the host, only on the PE that answers the host. If a run takes several frames on
 * several chips, the host numbers the inputs and outputs frame by frame on the first chip, then on the next. */
struct net_description {
    const char *model;
    const char *board;
    uint8_t build_id[16];
    uint16_t input_count; /* per frame, like output_count */
    uint16_t output_count;
    uint16_t frame_count; /* per chip */
    uint16_t pe_count;    /* per chip */
    uint16_t chip_count;
    uint16_t link_bytes; /* capacity of the link's receive buffer */
    const struct net_tensor *inputs;
    const struct net_tensor *outputs;
    const char *const *layer_names;
    const struct net_pe *pes;     /* on the first chip, this PE first */
    const struct net_chip *chips; /* this PE's chip first */
};

/* State of a PE, at the start of its activations, where the root PE can read it and write `observed`. */
struct net_control {
    uint32_t sign; /* net_sign, once the PE runs */
    uint32_t layer_count;
    volatile uint32_t observed; /* not 0: run and record layer by layer; a value of net_stop(): up to a layer */
    uint32_t frames;
    struct hal_counters counters; /* at the end of the last frame */
    int32_t status;               /* of the last frame: 0, or the error code */
    uint32_t fault_status;        /* after a fault: the core's Configurable Fault Status Register */
    uint32_t fault_pc;
    uint32_t fault_address;
    uint32_t events; /* address of struct net_events; 0: no trace */
    volatile uint32_t kept; /* not 0: states persist from the last frame; 0: they start anew. The root may write 0 */
};

enum {
    NET_STOPPED = -32, /* error code of a frame that net_stop() has ended */
    NET_MOST_LAYERS = 0xFFFF - 2,
};

/* Value of `observed` that ends the frame behind a layer, once `pieces` pieces of the layer are done. */
static inline uint32_t net_stop(uint32_t layer, uint32_t pieces)
{
    return (pieces - 1) << 16 | (layer + 2);
}

/* Record of a layer in an observed frame. Counters saturate. */
struct net_record {
    uint32_t digest; /* CRC-32 of the output's bytes */
    uint32_t cycles;
    uint32_t instructions;
    uint32_t asleep;
};

/* Part of a state, which persists from frame to frame: `bytes` bytes, initialised from `initial`, or with `fill` if
 * `initial` is 0. */
struct net_state {
    uint8_t *data;
    const uint8_t *initial;
    uint32_t bytes;
    uint32_t fill;
};

/* Trace event: a step of the frame begins, or the frame ends (NET_FRAME_END). */
struct net_event {
    uint32_t cycles; /* since reset, the lower 32 bits */
    uint16_t cycles_high;
    uint16_t step;
};

enum { NET_FRAME_END = 0xFFFF };

/* Header of the trace ring, which follows it. The ring holds the last `capacity` events, a power of two: event n has
 * index n modulo `capacity`. */
struct net_events {
    uint32_t written; /* since reset */
    uint32_t capacity;
};

/* The kit reads the sizes from these lines. */
_Static_assert(sizeof(struct net_event) == 8 && sizeof(struct net_events) == 8, "the protocol says so");
_Static_assert(sizeof(struct net_control) == 64, "the plan counts on it");
_Static_assert(sizeof(struct net_record) == 16, "the plan counts on it");
_Static_assert(sizeof(void *) != 4 || sizeof(struct net_state) == 16, "the plan counts on it");
_Static_assert(sizeof(void *) != 4 || sizeof(struct net_layer) == 24, "the plan counts on it");

/* Step of a frame, in programs that are a table of steps. In a step that computes, `flag` is a signed byte: the number
 * of layers to advance to the next such step, 0 if both compute pieces of one layer. */
enum net_step_kind {
    NET_END,
    NET_WAIT,    /* wait for `count` increments of flag `flag` */
    NET_SEND,    /* send the chain of messages whose first descriptor is at `what` */
    NET_SIGNAL,  /* increment flag `flag` of PE `count`; `what`: message tag and bits of net_signal */
    NET_SIGNALS, /* the same for `count` PEs, listed by the NET_TO behind this step */
    NET_TO,      /* operand of the step before, in `what`: list of struct noc_destination, or address of the page */
    NET_FETCH,   /* start to fetch a page of `count` bytes from `what` in DRAM; the NET_TO behind it says where to */
    NET_PAGE,    /* wait until the `count` pages (0 or 1) are fetched, then continue with the step at `what` */
    NET_PATCH,   /* write `what` to word `flag` of the command of the next step that is no NET_PATCH */
    NET_RESTORE, /* initialise the `count` parts of states from `what` on, as net_restore() does */
    NET_JOIN,    /* wait until submitted chains have ended */
    NET_AGAIN,   /* run the `count` steps from number `what` on, none of them NET_AGAIN, then continue here */
    NET_RUN,     /* run an accelerator's chain; its first layer is the `count` commands from `what` on */
    NET_SUBMIT,  /* start such a chain and return */
    NET_LINKED,  /* another layer of the chain before */
    NET_DRIVE,   /* a layer on an accelerator: driver function number `count`, arguments from `what` on */
    NET_CALL,    /* a layer on the core: function number `count`, arguments from `what` on */
    NET_ALSO,    /* another function on the core for the layer before */
};

enum net_signal {
    NET_SIGNAL_SENT = 1 << 16,      /* increment this PE's flag 0, too */
    NET_SIGNAL_THIS_CHIP = 1 << 17, /* PE numbers count from this chip's first PE */
};

struct net_step {
    uint8_t kind;
    uint8_t flag;
    uint16_t count;
    uint32_t what;
};

_Static_assert(sizeof(struct net_step) == 8, "the plan counts on it");

/* Argument of a function called by a step: a number, or the address of an operand. */
struct net_argument {
    uint32_t word;
};

extern const struct net_description net_description;
extern const uint32_t net_sign; /* identifies the build; not 0 */
extern const uint32_t *const net_layer_count;
extern const struct net_layer net_layers[];
extern const uint16_t *const net_layer_numbers; /* index of each layer in net_layers, shared by frames; 0: its number */
extern struct net_control *const net_control;
extern struct net_record *const net_records; /* right behind the control block */
extern struct net_events *const net_events;  /* 0 unless the build traces */
extern const uint32_t net_event_capacity;

static inline const struct net_layer *net_layer(uint32_t number)
{
    return &net_layers[net_layer_numbers != 0 ? net_layer_numbers[number] : number];
}

/* Run one frame: inputs in place before, outputs in place after. Returns 0 or an error code. */
int32_t net_run(void);

/* Convert `count` elements, from number `first` on, on their way in or out. */
void net_convert(const struct net_conversion *by, uint32_t first, const uint8_t *from, uint8_t *to, uint32_t count);

/* --- for net_convert(): one function for each kind of conversion --- */

void net_quantize(const struct net_conversion *by, uint32_t first, const uint8_t *from, uint8_t *to, uint32_t count);
void net_dequantize(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);
void net_look_up(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);
void net_move(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count);

/* --- for the PE's main loop --- */

/* Initialise the control block and the trace ring. */
void net_start(void);

/* Run a frame and update the control block. Returns the frame's status. */
int32_t net_frame(void);

/* --- for net_run() --- */

static inline int32_t net_observed(void)
{
    return net_control->observed != 0;
}

/* Called around each layer of an observed frame, or each piece of a layer: before it begins, and while its output is in
 * place. net_end_layer() returns 0, or NET_STOPPED if the frame ends here. */
void net_begin_layer(void);
int32_t net_end_layer(uint32_t layer);

/* Initialise these parts of states, unless the values of the last frame are kept. */
void net_restore(const struct net_state *states, uint32_t count);

/* Trace the beginning of a step. Only in builds that trace. */
void net_event(uint32_t step);

static inline void net_end_frame(void)
{
    net_event(NET_FRAME_END);
}

#endif
