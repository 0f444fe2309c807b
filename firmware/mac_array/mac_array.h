/* SPDX-License-Identifier: Apache-2.0 */
/* MAC array: commands, and functions to run them. Hardware manual: boards/pe-mesh.md, section 3.
 *
 * Two implementations: mac_array.c drives the hardware; mac_array_on_core.c computes the same commands on the core, for
 * boards without the array. */
#ifndef MAC_ARRAY_H
#define MAC_ARRAY_H

#include <stddef.h>
#include <stdint.h>

enum mac_array_kind {
    MAC_ARRAY_CONVOLUTION = 1,
    MAC_ARRAY_DEPTHWISE = 2,
    MAC_ARRAY_ADD = 3,
    MAC_ARRAY_MAXIMUM_POOL = 4,
    MAC_ARRAY_AVERAGE_POOL = 5,
};

enum mac_array_flag {
    MAC_ARRAY_PIXELS = 1,     /* the 16-wide axis lies along pixels */
    MAC_ARRAY_RAW = 2,        /* output int32 accumulators */
    MAC_ARRAY_ACCUMULATE = 4, /* start from the accumulators at `extra` */
    MAC_ARRAY_RESIDUAL = 8,   /* add the tensor at `extra` */
    MAC_ARRAY_SECOND = 16,    /* convolution: the weights are a second input */
    MAC_ARRAY_NIBBLES = 32,   /* two weights a byte */
    MAC_ARRAY_PRODUCT = 64,   /* addition: the product instead of the sum */
};

/* Constants of an addition: two operands rescaled and added. With MAC_ARRAY_PRODUCT the first rescaled operand is in the
 * place of `multiplier2`. */
struct mac_array_addition {
    int32_t zero1;
    int32_t multiplier1;
    int32_t shift1;
    int32_t zero2;
    int32_t multiplier2;
    int32_t shift2;
    int32_t multiplier;
    int32_t shift;
};

struct mac_array_command {
    const struct mac_array_command *next;
    uint8_t kind;
    uint8_t flags;
    uint16_t tag; /* number of the layer */
    const int8_t *input;
    const int8_t *weights; /* addition, MAC_ARRAY_SECOND: the second input */
    const void *parameters;
    void *output;
    uint16_t input_height;
    uint16_t input_width;
    int32_t input_row_stride;
    int32_t input_pixel_stride;
    uint16_t output_height;
    uint16_t output_width;
    int32_t output_row_stride;
    int32_t output_pixel_stride;
    uint16_t input_channels;
    uint16_t output_channels;
    uint8_t kernel_height;
    uint8_t kernel_width;
    uint8_t stride_y;
    uint8_t stride_x;
    uint8_t dilation_y;
    uint8_t dilation_x;
    uint8_t pad_top;
    uint8_t pad_left;
    int8_t input_zero;
    int8_t output_zero;
    int8_t clamp_min;
    int8_t clamp_max;
    const void *extra;
    int32_t extra_row_stride;
    int32_t extra_pixel_stride;
    const struct mac_array_addition *residual_parameters;
    int8_t residual_zero;
    int8_t second_zero;
    int8_t residual_min;
    int8_t residual_max;
    int32_t second_row_stride;
    int32_t second_pixel_stride;
    uint32_t reserved0;
};

/* Weights of a product in a block of a convolution across channels that has `left` channels or more. */
static inline int32_t mac_array_columns(int32_t left)
{
    return left <= 4 ? 4 : left <= 8 ? 8 : 16;
}

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(sizeof(struct mac_array_addition) == 32, "eight words");
_Static_assert(sizeof(struct mac_array_command) == 96, "a command is 24 words");
_Static_assert(offsetof(struct mac_array_command, parameters) == 16, "word 4");
_Static_assert(offsetof(struct mac_array_command, input_channels) == 48, "word 12");
_Static_assert(offsetof(struct mac_array_command, input_zero) == 60, "word 15");
_Static_assert(offsetof(struct mac_array_command, second_row_stride) == 84, "word 21");
#endif

/* Run a chain and sleep until it ends. Returns 0 or the array's error code. */
int32_t mac_array_run(const struct mac_array_command *first);

/* Start a chain and return at once. */
void mac_array_submit(const struct mac_array_command *first);

/* Sleep until the submitted chain ends; return at once if there is none. Returns 0 or the array's error code. */
int32_t mac_array_wait(void);

/* Run one command and ignore its `next`. Returns 0 or the array's error code. */
int32_t mac_array_run_one(const struct mac_array_command *command);

#endif
