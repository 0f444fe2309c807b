/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's interface to a machine-learning array of 4 x 16 cells: products of matrices, convolutions of stride 1.
 *
 * The calls have the usual shape of a vendor's library: parameters in a struct, a call to start, an event to wake the
 * core. mla_emulated.c implements them for npukit's emulator. For a real chip, replace mla_emulated.c with a file that
 * calls the vendor's library. Nothing here is, or is compatible with, a vendor's library or a chip's registers.
 *
 * Sums have 24 bits and wrap; targets are int32. Addresses and strides are multiples of 16 bytes. */
#ifndef MLA_LIBRARY_H
#define MLA_LIBRARY_H

#include <stdint.h>

/* target[row][column] = sum of a[row][k] * b[k][column]. `b` has blocks of 16 columns: [columns / 16][depth][16].
 * `target` has whole blocks: [rows][columns, padded to 16]. `depth` is a multiple of 16. With a shift `right`, negative
 * sums become 0, and `target` has the low 16 bits of each shifted sum. */
struct mla_product {
    const int8_t *a, *b;
    void *target;
    int32_t rows, depth, columns, a_stride, right;
};

/* target[channel][row][x] = sum of weights * input at (row + ky, x + kx). `input` has a plane per channel, borders
 * included; a row is a multiple of 16 bytes. `weights`: [channels / 4][input channel][ky][kx][4]. A row of `target` has
 * whole blocks of 16. */
struct mla_convolution {
    const int8_t *weights, *input;
    int32_t *target;
    int32_t rows, width, channels, input_channels, kernel_height, kernel_width, row_stride, plane_stride;
};

void mla_execute_mm(const struct mla_product *product);
void mla_execute_conv(const struct mla_convolution *convolution);

/* Wait for the started work. Returns 0 or the array's error. */
int32_t mla_finish(void);

#endif
