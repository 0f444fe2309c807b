/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The MAC array: mac_array.c (registers, chains, checks), mac_array_cycles.c, and mac_array_compute.c (results). */
#ifndef MAC_ARRAY_H
#define MAC_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { CONVOLUTION = 1, DEPTHWISE = 2, ADD = 3, MAXIMUM_POOL = 4, AVERAGE_POOL = 5 };
enum { MAC_ARRAY_BIGGEST_BLOCK = 256, MAC_ARRAY_PARAMETER_BYTES = 9 };
enum flag { PIXELS = 1, RAW = 2, ACCUMULATE = 4, RESIDUAL = 8, SECOND = 16, NIBBLES = 32, PRODUCT = 64 };

/* Hardware manual, section 3.2. */
struct command {
    uint32_t next;
    uint8_t kind, flags;
    uint16_t tag;
    uint32_t input, weights, parameters, output;
    uint16_t input_height, input_width;
    int32_t input_row_stride, input_pixel_stride;
    uint16_t output_height, output_width;
    int32_t output_row_stride, output_pixel_stride;
    uint16_t input_channels, output_channels;
    uint8_t kernel_height, kernel_width, stride_y, stride_x;
    uint8_t dilation_y, dilation_x, pad_top, pad_left;
    int8_t input_zero, output_zero, clamp_min, clamp_max;
    uint32_t extra;
    int32_t extra_row_stride, extra_pixel_stride;
    uint32_t residual_parameters;
    int8_t residual_zero, second_zero;
    int8_t residual_min, residual_max;
    int32_t second_row_stride, second_pixel_stride;
    uint32_t reserved0;
};

_Static_assert(sizeof(struct command) == 96, "24 words");

/* Channels of a block of weights or parameters. */
uint32_t mac_array_block(const struct command *command, uint32_t width, uint32_t lanes);

/* Sizes of the array's parts and cycles of its phases: hardware manual, section 3.5. */
struct mac_array_figures {
    uint32_t width, lanes, port_bytes, requantisers, window_rows, parameter_blocks, parameter_bytes_per_channel,
        setup_cycles, chain_cycles, drain_cycles;
};

/* Cycles of a checked command. `first`: the command is the first of its chain. */
uint64_t mac_array_cycles(const struct mac_array_figures *figures, const struct command *command, bool first);

/* An operand or result (mac_array_operands.c): `height` x `width` pixels of contiguous bytes. */
struct tensor {
    const char *what;
    uint32_t base, height, width;
    int32_t row_stride, pixel_stride;
    uint64_t pixel_bytes;
    bool elementwise; /* each result depends on the operand at its own position only: may be in place */
};

struct range {
    int64_t from, to;
};

enum { MAC_ARRAY_MOST_OPERANDS = 5 };

uint64_t mac_array_depth(const struct command *command);
/* Products of a channel with a place in the weights. */
uint64_t mac_array_rows(const struct command *command);
/* Weights of a product and of the next, in blocks of `block` channels of which the last has `left`. */
uint32_t mac_array_columns(const struct command *command, uint32_t block, uint32_t left);
uint64_t mac_array_weights(const struct command *command, uint32_t block);
uint64_t mac_array_weight_bytes(const struct command *command, uint32_t block);
struct tensor mac_array_output(const struct command *command);
uint32_t mac_array_operands(const struct command *command, uint32_t block, struct tensor *list);
struct range mac_array_range(const struct tensor *tensor);

/* The name of an operand that the output overlaps against the manual's rules, or of the output if its elements overlap;
 * 0 if none. All tensors must lie in the SRAM. */
const char *mac_array_overlaps(const struct tensor *output, const struct tensor *operands, uint32_t count,
                               uint32_t sram_bytes);

/* Working memory: a window (kernel x input channels), the results, with NIBBLES or SECOND the weights or the second
 * operand as a byte each in the blocks of weights, and with SECOND the sum of each of its channels. */
struct mac_array_scratch {
    int8_t *window;
    uint8_t *results;
    int8_t *weights;
    uint32_t *totals;
};

size_t mac_array_window_bytes(const struct command *command);
size_t mac_array_result_bytes(const struct command *command);

/* Compute a checked command with accumulators of `bits` (up to 32). */
void mac_array_compute(const struct command *command, uint8_t *sram, uint32_t block, uint32_t bits,
                       struct mac_array_scratch scratch);

#endif
