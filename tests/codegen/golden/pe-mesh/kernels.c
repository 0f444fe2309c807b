/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the core. Made from TIR by TVM's C code generator; npukit VERSION. */
#include "kernels.h"

#include "fixed_point.h"

/* softmax: softmax, 1x5x4x6 to 1x5x4x6; on the core */
void softmax_0(const int8_t *restrict input, const int32_t *restrict exp, int8_t *restrict output)
{
    for (int32_t y = 0; y < 5; y++) {
        for (int32_t row = 0; row < 4; row++) {
            int32_t start = y * 24 + row * 6;
            int32_t largest = (int32_t)input[start];
            for (int32_t i = 1; i < 6; i++) {
                int32_t value = (int32_t)input[start + i];
                largest = value > largest ? value : largest;
            }
            int32_t sum = 0;
            for (int32_t i_1 = 0; i_1 < 6; i_1++) {
                sum += rounded_shift(exp[largest - (int32_t)input[start + i_1]], 12);
            }
            int32_t zeros = __builtin_clz((uint32_t)sum);
            int32_t scale = reciprocal_of_one_plus((int32_t)(((uint32_t)sum << (uint32_t)zeros) -
                (uint32_t)2147483648));
            int32_t shift = 35 - zeros;
            for (int32_t i_2 = 0; i_2 < 6; i_2++) {
                output[y * 24 + row * 6 + i_2] = (int8_t)clamp((shift > 31 ? 0 : rounded_shift(high_product(exp[largest
                    - (int32_t)input[start + i_2]], scale), shift > 31 ? 31 : shift)) - 128, -128, 127);
            }
        }
    }
}
