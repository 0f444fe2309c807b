/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the core. */
#ifndef KERNELS_H
#define KERNELS_H

#include <stdint.h>

void softmax_0(const int8_t *restrict input, const int32_t *restrict exp, int8_t *restrict output);

#endif
