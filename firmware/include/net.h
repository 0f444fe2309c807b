/* The compiled network, as the rest of the firmware sees it. The generated project/net/net.c implements this. */
#ifndef NET_H
#define NET_H

#include <stdint.h>

/* A tensor, or the part of one that this PE holds: `rows` rows of `row_bytes`, `stride` bytes apart. */
struct net_tensor {
    const char *name;
    uint8_t *data;
    uint32_t row_bytes;
    uint32_t rows;
    uint32_t stride;
};

/* One layer: the tensor it leaves behind. */
struct net_layer {
    const char *name;
    struct net_tensor output;
};

struct net_description {
    const char *model;
    const char *board;
    uint8_t build_id[16];
    uint16_t input_count;
    uint16_t output_count;
    uint16_t layer_count;
    const struct net_tensor *inputs;
    const struct net_tensor *outputs;
    const struct net_layer *layers;
};

extern const struct net_description net_description;

/* Called after each layer, while its output is still in place. */
typedef void net_observer(uint32_t layer);

/* Run one frame: inputs in place before, outputs in place after. 0, or the error code of what failed.
 * With an observer every layer runs by itself, and the observer is called after each; without one (0) the engines run in chains. */
int32_t net_run(net_observer *observer);

#endif
