/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver asks of a machine-learning array of 4 x 16 cells: products of matrices and convolutions of stride 1.
 *
 * The calls have the shape of what such a chip's own library offers: parameters in a struct, one call that starts, an
 * event that wakes the core. mla_emulated.c has them for npukit's emulator. Who owns a chip puts a file of his own in
 * its place, which calls his vendor's library; nothing here is, or is compatible with, that library or its registers.
 *
 * Sums have 24 bits and wrap; targets are int32. Addresses and strides are multiples of 16 bytes. */
#ifndef MLA_LIBRARY_H
#define MLA_LIBRARY_H

#include <stdint.h>

/* target[row][column] = sum of a[row][k] * b[k][column]: `b` lies in blocks of 16 columns, [columns / 16][depth][16], and
 * `target` has whole blocks, [rows][columns, padded to 16]. `depth` is a multiple of 16. With a shift to the `right` sums
 * are shifted, those below 0 become 0, and `target` has the low 16 bits of each. */
struct mla_product {
    const int8_t *a, *b;
    void *target;
    int32_t rows, depth, columns, a_stride, right;
};

/* target[channel][row][x] = sum of weights * input at (row + ky, x + kx): `input` in planes of a channel each, a row
 * with a whole number of 16 bytes, borders included; `weights` [channels / 4][input channel][ky][kx][4]; a row of
 * `target` has whole blocks of 16. */
struct mla_convolution {
    const int8_t *weights, *input;
    int32_t *target;
    int32_t rows, width, channels, input_channels, kernel_height, kernel_width, row_stride, plane_stride;
};

void mla_execute_mm(const struct mla_product *product);
void mla_execute_conv(const struct mla_convolution *convolution);

/* Waits for what was started: 0, or what the array found wrong. */
int32_t mla_finish(void);

#endif
