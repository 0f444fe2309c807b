/* A blob of the graph NPU and the arithmetic of its layers (graphnpu.md), for the model and for the stand-in on the
 * core. */
#ifndef GRAPHNPU_BLOB_H
#define GRAPHNPU_BLOB_H

#include <stdbool.h>
#include <stdint.h>

enum { GRAPHNPU_BASES = 7, GRAPHNPU_PLACE_BITS = 24 };
enum graphnpu_kind {
    GRAPHNPU_CONVOLUTION = 1,
    GRAPHNPU_DEPTHWISE,
    GRAPHNPU_ADD,
    GRAPHNPU_AVERAGE_POOL,
    GRAPHNPU_MAXIMUM_POOL,
};

#define GRAPHNPU_MAGIC 0x4E504247U

struct graphnpu_plane {
    int32_t height, width, channels;
};

struct graphnpu_layer {
    int32_t kind, input, second, output; /* places: base << 24 + offset */
    struct graphnpu_plane in, out;
    int32_t kernel_height, kernel_width, stride_y, stride_x, dilation_y, dilation_x, pad_top, pad_left;
    int32_t input_zero, output_zero, clamp_min, clamp_max;
    int32_t weights, channel_words; /* places in the blob */
};

struct graphnpu_blob {
    uint32_t magic, layers, cycles, reserved;
    struct graphnpu_layer layer[];
};

/* A bias or a zero point, and a fixed-point factor. */
struct graphnpu_factor {
    int32_t bias, multiplier, shift;
};

/* An element of the output. */
struct graphnpu_element {
    int32_t y, x, c;
};

/* Addresses of the blob, scratch memory, output and inputs. */
struct graphnpu_bases {
    int8_t *at[GRAPHNPU_BASES];
};

static inline int8_t *graphnpu_at(const struct graphnpu_bases *bases, int32_t place)
{
    return bases->at[place >> GRAPHNPU_PLACE_BITS] + (place & ((1 << GRAPHNPU_PLACE_BITS) - 1));
}

static inline int32_t graphnpu_offset(struct graphnpu_plane plane, int32_t y, int32_t x, int32_t c)
{
    return (y * plane.width + x) * plane.channels + c;
}

/* Rescale like TensorFlow Lite: the left shift wraps, and the result is rounded twice. */
static inline int32_t graphnpu_rescale(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
    const int32_t raised = (int32_t)((uint32_t)value << left);
    const int32_t high = (int32_t)(((int64_t)raised * multiplier + ((int64_t)1 << 30)) >> 31);
    return (int32_t)(((int64_t)high + (((int64_t)1 << right) >> 1) - (right > 0 && high < 0)) >> right);
}

static inline int8_t graphnpu_clamped(const struct graphnpu_layer *layer, int32_t value)
{
    const int32_t raised = value < layer->clamp_min ? layer->clamp_min : value;
    return (int8_t)(raised > layer->clamp_max ? layer->clamp_max : raised);
}

/* Find the row and column under a tap of the kernel. Return true if they lie in the input. */
static inline bool graphnpu_under(const struct graphnpu_layer *layer, struct graphnpu_element at, int32_t tap, int32_t *y, int32_t *x)
{
    *y = at.y * layer->stride_y + tap / layer->kernel_width * layer->dilation_y - layer->pad_top;
    *x = at.x * layer->stride_x + tap % layer->kernel_width * layer->dilation_x - layer->pad_left;
    return *y >= 0 && *y < layer->in.height && *x >= 0 && *x < layer->in.width;
}

static inline int8_t graphnpu_filtered(const struct graphnpu_layer *layer, const struct graphnpu_bases *bases,
                                       struct graphnpu_element at)
{
    const bool mixes = layer->kind == GRAPHNPU_CONVOLUTION;
    const int32_t taps = layer->kernel_height * layer->kernel_width, depth = mixes ? layer->in.channels : 1;
    const int8_t *input = graphnpu_at(bases, layer->input);
    const int8_t *weights = graphnpu_at(bases, layer->weights) + at.c * taps * depth;
    const struct graphnpu_factor by = ((const struct graphnpu_factor *)(const void *)graphnpu_at(bases, layer->channel_words))[at.c];
    uint32_t sum = (uint32_t)by.bias;
    for (int32_t tap = 0; tap < taps; tap++) {
        int32_t y, x;
        const bool inside = graphnpu_under(layer, at, tap, &y, &x);
        for (int32_t i = 0; i < depth; i++) {
            const int32_t value = inside ? input[graphnpu_offset(layer->in, y, x, mixes ? i : at.c)] : layer->input_zero;
            sum += (uint32_t)(value * weights[tap * depth + i]);
        }
    }
    return graphnpu_clamped(layer, graphnpu_rescale((int32_t)sum, by.multiplier, by.shift) + layer->output_zero);
}

static inline int8_t graphnpu_sum(const struct graphnpu_layer *layer, const struct graphnpu_bases *bases, struct graphnpu_element at)
{
    const struct graphnpu_factor *by = (const struct graphnpu_factor *)(const void *)graphnpu_at(bases, layer->channel_words);
    const int32_t place = graphnpu_offset(layer->out, at.y, at.x, at.c);
    const int32_t values[2] = {graphnpu_at(bases, layer->input)[place], graphnpu_at(bases, layer->second)[place]};
    uint32_t sum = 0;
    for (int i = 0; i < 2; i++) {
        const uint32_t raised = (uint32_t)(values[i] - by[i].bias) << 20;
        sum += (uint32_t)graphnpu_rescale((int32_t)raised, by[i].multiplier, by[i].shift);
    }
    return graphnpu_clamped(layer, graphnpu_rescale((int32_t)sum, by[2].multiplier, by[2].shift) + layer->output_zero);
}

static inline int8_t graphnpu_pooled(const struct graphnpu_layer *layer, const struct graphnpu_bases *bases,
                                     struct graphnpu_element at)
{
    const int8_t *input = graphnpu_at(bases, layer->input);
    int32_t sum = 0, count = 0, largest = INT8_MIN;
    for (int32_t tap = 0; tap < layer->kernel_height * layer->kernel_width; tap++) {
        int32_t y, x;
        if (graphnpu_under(layer, at, tap, &y, &x)) {
            const int32_t value = input[graphnpu_offset(layer->in, y, x, at.c)];
            sum += value;
            count++;
            largest = value > largest ? value : largest;
        }
    }
    if (layer->kind == GRAPHNPU_MAXIMUM_POOL) {
        return graphnpu_clamped(layer, largest);
    }
    return graphnpu_clamped(layer, count == 0 ? 0 : (sum >= 0 ? sum + count / 2 : sum - count / 2) / count);
}

static inline int8_t graphnpu_element(const struct graphnpu_layer *layer, const struct graphnpu_bases *bases,
                                      struct graphnpu_element at)
{
    switch (layer->kind) {
    case GRAPHNPU_ADD:
        return graphnpu_sum(layer, bases, at);
    case GRAPHNPU_AVERAGE_POOL:
    case GRAPHNPU_MAXIMUM_POOL:
        return graphnpu_pooled(layer, bases, at);
    default:
        return graphnpu_filtered(layer, bases, at);
    }
}

static inline void graphnpu_run_layer(const struct graphnpu_layer *layer, const struct graphnpu_bases *bases)
{
    int8_t *output = graphnpu_at(bases, layer->output);
    struct graphnpu_element at;
    for (at.y = 0; at.y < layer->out.height; at.y++) {
        for (at.x = 0; at.x < layer->out.width; at.x++) {
            for (at.c = 0; at.c < layer->out.channels; at.c++) {
                *output++ = graphnpu_element(layer, bases, at);
            }
        }
    }
}

#endif
