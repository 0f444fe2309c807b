/* What the array and its driver compute, on the core alone: sum by sum. */
#include "mla.h"

/* The weight of a channel for an input channel at a place of the window. */
typedef int8_t mla_weight(const int8_t *weights, const int32_t *layer, int32_t channel, int32_t place, int32_t c);

static int8_t in_product(const int8_t *weights, const int32_t *layer, int32_t channel, int32_t place, int32_t c)
{
    const int32_t taps = layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH];
    const int32_t depth = mla_padded(taps * layer[INPUT_CHANNELS], MLA_WIDTH);
    const int32_t k = place * layer[INPUT_CHANNELS] + c;
    return weights[(channel / MLA_WIDTH * depth + k) * MLA_WIDTH + channel % MLA_WIDTH];
}

static int8_t in_convolution(const int8_t *weights, const int32_t *layer, int32_t channel, int32_t place, int32_t c)
{
    const int32_t taps = layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH];
    const int32_t block = channel / MLA_LANES * layer[INPUT_CHANNELS] + c;
    return weights[(block * taps + place) * MLA_LANES + channel % MLA_LANES];
}

struct position {
    int32_t y, x, channel;
};

static int32_t sum_of(const int8_t *input, const int8_t *weights, const int32_t *layer, struct position at, mla_weight *weight)
{
    int32_t sum = 0;
    for (int32_t place = 0; place < layer[KERNEL_HEIGHT] * layer[KERNEL_WIDTH]; place++) {
        const int32_t ky = place / layer[KERNEL_WIDTH], kx = place % layer[KERNEL_WIDTH];
        const int32_t row = at.y * layer[STRIDE_Y] + ky * layer[DILATION_Y] - layer[PAD_TOP];
        const int32_t column = at.x * layer[STRIDE_X] + kx * layer[DILATION_X] - layer[PAD_LEFT];
        const int inside = row >= 0 && row < layer[INPUT_HEIGHT] && column >= 0 && column < layer[INPUT_WIDTH];
        const int8_t *pixel = input + row * layer[INPUT_ROW_STRIDE] + column * layer[INPUT_PIXEL_STRIDE];
        for (int32_t c = 0; c < layer[INPUT_CHANNELS]; c++) {
            sum += weight(weights, layer, at.channel, place, c) * (inside ? pixel[c] : layer[INPUT_ZERO]);
        }
    }
    return sum;
}

static int32_t compute(const int8_t *input, const int8_t *weights, const int32_t *channels, const int32_t *layer,
                       int8_t *output, mla_weight *weight)
{
    for (int32_t y = 0; y < layer[OUTPUT_HEIGHT]; y++) {
        for (int32_t x = 0; x < layer[OUTPUT_WIDTH]; x++) {
            for (int32_t c = 0; c < layer[OUTPUT_CHANNELS]; c++) {
                const struct mla_stage stage = mla_stage(channels + CHANNEL_WORDS * c, layer);
                const struct position at = {y, x, c};
                output[y * layer[OUTPUT_ROW_STRIDE] + x * layer[OUTPUT_PIXEL_STRIDE] + c] =
                    mla_finished(sum_of(input, weights, layer, at, weight), stage);
            }
        }
    }
    return 0;
}

int32_t mla_products(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                     void *output)
{
    (void)scratch;
    return compute(input, weights, channels, layer, output, in_product);
}

int32_t mla_convolution(void *input, const int8_t *weights, const int32_t *channels, const int32_t *layer, void *scratch,
                        void *output)
{
    (void)scratch;
    return compute(input, weights, channels, layer, output, in_convolution);
}
