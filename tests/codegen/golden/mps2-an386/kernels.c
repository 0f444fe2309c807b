/* SPDX-License-Identifier: Apache-2.0 */
/* Layers on the core. Made from TIR by TVM's C code generator; npukit VERSION. */
#include "kernels.h"

#include "fixed_point.h"

/* conv: conv2d, 1x5x4x6 to 1x5x4x6; on the core */
void conv_0(const int8_t *restrict input, const int8_t *restrict weights, const int32_t *restrict multipliers, const
    int32_t *restrict addends, const int8_t *restrict shifts, int8_t *restrict output)
{
    for (int32_t y = 0; y < 5; y++) {
        int32_t y_origin = y - 1;
        int32_t y_first = y_origin < 0 ? -y_origin : 0;
        int32_t y_end = y_origin + 2 >= 5 ? 5 - y_origin : 3;
        int32_t sum = 0;
        int32_t sum_1 = 0;
        int32_t sum_2 = 0;
        int32_t sum_3 = 0;
        int32_t sum_4 = 0;
        int32_t sum_5 = 0;
        int32_t sum_6 = 0;
        int32_t sum_7 = 0;
        for (int32_t ky = y_first; ky < y_end; ky++) {
            int32_t pixel = (y_origin + ky) * 24;
            int32_t pixel_1 = (y_origin + ky) * 24 + 6;
            int32_t tap = ky * 3 * 6 * 4;
            for (int32_t i = 0; i < 9; i++) {
                int32_t value = (int32_t)input[pixel + i * 2] - 3;
                int32_t value_1 = (int32_t)input[pixel_1 + i * 2] - 3;
                int32_t weight = (int32_t)weights[tap + i * 2 * 4];
                sum += value * weight;
                sum_4 += value_1 * weight;
                int32_t weight_1 = (int32_t)weights[tap + i * 2 * 4 + 1];
                sum_1 += value * weight_1;
                sum_5 += value_1 * weight_1;
                int32_t weight_2 = (int32_t)weights[tap + i * 2 * 4 + 2];
                sum_2 += value * weight_2;
                sum_6 += value_1 * weight_2;
                int32_t weight_3 = (int32_t)weights[tap + i * 2 * 4 + 3];
                sum_3 += value * weight_3;
                sum_7 += value_1 * weight_3;
                int32_t value_2 = (int32_t)input[pixel + (i * 2 + 1)] - 3;
                int32_t value_3 = (int32_t)input[pixel_1 + (i * 2 + 1)] - 3;
                int32_t weight_4 = (int32_t)weights[tap + (i * 2 + 1) * 4];
                sum += value_2 * weight_4;
                sum_4 += value_3 * weight_4;
                int32_t weight_5 = (int32_t)weights[tap + (i * 2 + 1) * 4 + 1];
                sum_1 += value_2 * weight_5;
                sum_5 += value_3 * weight_5;
                int32_t weight_6 = (int32_t)weights[tap + (i * 2 + 1) * 4 + 2];
                sum_2 += value_2 * weight_6;
                sum_6 += value_3 * weight_6;
                int32_t weight_7 = (int32_t)weights[tap + (i * 2 + 1) * 4 + 3];
                sum_3 += value_2 * weight_7;
                sum_7 += value_3 * weight_7;
            }
        }
        output[y * 24 + 6] = (int8_t)clamp((high_half(sum * 4, multipliers[0]) + addends[0] - ((sum >> 31) & 2)) >>
            (int32_t)shifts[0], -128, 127);
        output[y * 24 + 6 + 1] = (int8_t)clamp((high_half(sum_1 * 4, multipliers[1]) + addends[1] - ((sum_1 >> 31) & 2))
            >> (int32_t)shifts[1], -128, 127);
        output[y * 24 + 6 + 2] = (int8_t)clamp((high_half(sum_2 * 4, multipliers[2]) + addends[2] - ((sum_2 >> 31) & 2))
            >> (int32_t)shifts[2], -128, 127);
        output[y * 24 + 6 + 3] = (int8_t)clamp((high_half(sum_3 * 4, multipliers[3]) + addends[3] - ((sum_3 >> 31) & 2))
            >> (int32_t)shifts[3], -128, 127);
        output[y * 24 + 12] = (int8_t)clamp((high_half(sum_4 * 4, multipliers[0]) + addends[0] - ((sum_4 >> 31) & 2)) >>
            (int32_t)shifts[0], -128, 127);
        output[y * 24 + 12 + 1] = (int8_t)clamp((high_half(sum_5 * 4, multipliers[1]) + addends[1] - ((sum_5 >> 31) &
            2)) >> (int32_t)shifts[1], -128, 127);
        output[y * 24 + 12 + 2] = (int8_t)clamp((high_half(sum_6 * 4, multipliers[2]) + addends[2] - ((sum_6 >> 31) &
            2)) >> (int32_t)shifts[2], -128, 127);
        output[y * 24 + 12 + 3] = (int8_t)clamp((high_half(sum_7 * 4, multipliers[3]) + addends[3] - ((sum_7 >> 31) &
            2)) >> (int32_t)shifts[3], -128, 127);
        for (int32_t block = 0; block < 2; block++) {
            int32_t sum_8 = 0;
            int32_t sum_9 = 0;
            int32_t first = (4 + block) * 54;
            for (int32_t ky_1 = y_first; ky_1 < y_end; ky_1++) {
                int32_t pixel_2 = (y_origin + ky_1) * 24;
                int32_t pixel_3 = (y_origin + ky_1) * 24 + 6;
                int32_t tap_1 = first + ky_1 * 3 * 6;
                for (int32_t i_1 = 0; i_1 < 9; i_1++) {
                    int32_t value_4 = (int32_t)input[pixel_2 + i_1 * 2] - 3;
                    int32_t value_5 = (int32_t)input[pixel_3 + i_1 * 2] - 3;
                    int32_t weight_8 = (int32_t)weights[tap_1 + i_1 * 2];
                    sum_8 += value_4 * weight_8;
                    sum_9 += value_5 * weight_8;
                    int32_t value_6 = (int32_t)input[pixel_2 + (i_1 * 2 + 1)] - 3;
                    int32_t value_7 = (int32_t)input[pixel_3 + (i_1 * 2 + 1)] - 3;
                    int32_t weight_9 = (int32_t)weights[tap_1 + (i_1 * 2 + 1)];
                    sum_8 += value_6 * weight_9;
                    sum_9 += value_7 * weight_9;
                }
            }
            output[y * 24 + 6 + (4 + block)] = (int8_t)clamp((high_half(sum_8 * 4, multipliers[4 + block]) + addends[4 +
                block] - ((sum_8 >> 31) & 2)) >> (int32_t)shifts[4 + block], -128, 127);
            output[y * 24 + 12 + (4 + block)] = (int8_t)clamp((high_half(sum_9 * 4, multipliers[4 + block]) + addends[4
                + block] - ((sum_9 >> 31) & 2)) >> (int32_t)shifts[4 + block], -128, 127);
        }
        for (int32_t single = 0; single < 2; single++) {
            int32_t x = single < 1 ? single : single + 2;
            int32_t x_origin = x - 1;
            int32_t x_first = x_origin < 0 ? -x_origin : 0;
            int32_t x_end = x_origin + 2 >= 4 ? 4 - x_origin : 3;
            int32_t sum_10 = 0;
            int32_t sum_11 = 0;
            int32_t sum_12 = 0;
            int32_t sum_13 = 0;
            for (int32_t ky_2 = y_first; ky_2 < y_end; ky_2++) {
                for (int32_t kx = x_first; kx < x_first + 1; kx++) {
                    int32_t pixel_4 = (y_origin + ky_2) * 24 + (x_origin + kx) * 6;
                    int32_t tap_2 = (ky_2 * 3 + kx) * 6 * 4;
                    for (int32_t i_2 = 0; i_2 < x_end * 6 - x_first * 6; i_2++) {
                        int32_t value_8 = (int32_t)input[pixel_4 + i_2] - 3;
                        int32_t weight_10 = (int32_t)weights[tap_2 + i_2 * 4];
                        sum_10 += value_8 * weight_10;
                        int32_t weight_11 = (int32_t)weights[tap_2 + i_2 * 4 + 1];
                        sum_11 += value_8 * weight_11;
                        int32_t weight_12 = (int32_t)weights[tap_2 + i_2 * 4 + 2];
                        sum_12 += value_8 * weight_12;
                        int32_t weight_13 = (int32_t)weights[tap_2 + i_2 * 4 + 3];
                        sum_13 += value_8 * weight_13;
                    }
                }
            }
            output[y * 24 + x * 6] = (int8_t)clamp((high_half(sum_10 * 4, multipliers[0]) + addends[0] - ((sum_10 >> 31)
                & 2)) >> (int32_t)shifts[0], -128, 127);
            output[y * 24 + x * 6 + 1] = (int8_t)clamp((high_half(sum_11 * 4, multipliers[1]) + addends[1] - ((sum_11 >>
                31) & 2)) >> (int32_t)shifts[1], -128, 127);
            output[y * 24 + x * 6 + 2] = (int8_t)clamp((high_half(sum_12 * 4, multipliers[2]) + addends[2] - ((sum_12 >>
                31) & 2)) >> (int32_t)shifts[2], -128, 127);
            output[y * 24 + x * 6 + 3] = (int8_t)clamp((high_half(sum_13 * 4, multipliers[3]) + addends[3] - ((sum_13 >>
                31) & 2)) >> (int32_t)shifts[3], -128, 127);
            for (int32_t block_1 = 0; block_1 < 2; block_1++) {
                int32_t sum_14 = 0;
                int32_t first_1 = (4 + block_1) * 54;
                for (int32_t ky_3 = y_first; ky_3 < y_end; ky_3++) {
                    for (int32_t kx_1 = x_first; kx_1 < x_first + 1; kx_1++) {
                        int32_t pixel_5 = (y_origin + ky_3) * 24 + (x_origin + kx_1) * 6;
                        int32_t tap_3 = first_1 + (ky_3 * 3 + kx_1) * 6;
                        for (int32_t i_3 = 0; i_3 < x_end * 6 - x_first * 6; i_3++) {
                            int32_t value_9 = (int32_t)input[pixel_5 + i_3] - 3;
                            int32_t weight_14 = (int32_t)weights[tap_3 + i_3];
                            sum_14 += value_9 * weight_14;
                        }
                    }
                }
                output[y * 24 + x * 6 + (4 + block_1)] = (int8_t)clamp((high_half(sum_14 * 4, multipliers[4 + block_1])
                    + addends[4 + block_1] - ((sum_14 >> 31) & 2)) >> (int32_t)shifts[4 + block_1], -128, 127);
            }
        }
    }
}

/* sum: add, 1x5x4x6 and 1x5x4x6 to 1x5x4x6; on the core */
void sum_0(const int8_t *restrict first, const int8_t *restrict second, int8_t *restrict output)
{
    for (int32_t i = 0; i < 120; i++) {
        int32_t a = ((int32_t)first[i] + 7) * 524288;
        int32_t b = requantize(((int32_t)second[i] - 3) * 1048576, 1431655765, -1);
        output[i] = (int8_t)clamp(requantize(a + b, 1610612736, -19) + 1, -128, 127);
    }
}

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
