/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the core. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

void conv_0(const int8_t *restrict input, const int8_t *restrict weights, const int32_t *restrict multipliers, const
    int32_t *restrict addends, const int8_t *restrict shifts, int8_t *restrict output);
void sum_0(const int8_t *restrict first, const int8_t *restrict second, int8_t *restrict output);
void softmax_0(const int8_t *restrict input, const int32_t *restrict exp, int8_t *restrict output);

#endif
