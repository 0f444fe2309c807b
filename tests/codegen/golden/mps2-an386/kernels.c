/* The layers the core computes. Made from TIR by TVM's C code generator; npukit VERSION. */
#include "kernels.h"

#include "fixed_point.h"

/* conv: conv2d, 1x5x4x6 to 1x5x4x6; on the core */
void conv_0(const int8_t *restrict input, const int8_t *restrict weights, const int32_t *restrict multipliers, const
    int8_t *restrict shifts, int8_t *restrict output)
{
    for (int32_t y = 0; y < 5; y++) {
        for (int32_t x = 0; x < 4; x++) {
            int32_t y_origin = y - 1;
            int32_t y_first = y_origin < 0 ? -y_origin : 0;
            int32_t y_end = y_origin + 2 >= 5 ? 5 - y_origin : 3;
            int32_t x_origin = x - 1;
            int32_t x_first = x_origin < 0 ? -x_origin : 0;
            int32_t x_end = x_origin + 2 >= 4 ? 4 - x_origin : 3;
            int32_t sum = 0;
            int32_t sum_1 = 0;
            int32_t sum_2 = 0;
            int32_t sum_3 = 0;
            for (int32_t ky = y_first; ky < y_end; ky++) {
                for (int32_t kx = x_first; kx < x_end; kx++) {
                    int32_t pixel = (y_origin + ky) * 24 + (x_origin + kx) * 6;
                    int32_t tap = (ky * 3 + kx) * 6;
                    int32_t tap_1 = ((3 + ky) * 3 + kx) * 6;
                    int32_t tap_2 = ((6 + ky) * 3 + kx) * 6;
                    int32_t tap_3 = ((9 + ky) * 3 + kx) * 6;
                    for (int32_t i = 0; i < 6; i++) {
                        int32_t value = (int32_t)input[pixel + i] - 3;
                        sum += value * (int32_t)weights[tap + i];
                        sum_1 += value * (int32_t)weights[tap_1 + i];
                        sum_2 += value * (int32_t)weights[tap_2 + i];
                        sum_3 += value * (int32_t)weights[tap_3 + i];
                    }
                }
            }
            output[y * 24 + x * 6] = (int8_t)clamp(scale_down(sum, multipliers[0], -(int32_t)shifts[0]) - 7, -128, 127);
            output[y * 24 + x * 6 + 1] = (int8_t)clamp(scale_down(sum_1, multipliers[1], -(int32_t)shifts[1]) - 7, -128,
                127);
            output[y * 24 + x * 6 + 2] = (int8_t)clamp(scale_down(sum_2, multipliers[2], -(int32_t)shifts[2]) - 7, -128,
                127);
            output[y * 24 + x * 6 + 3] = (int8_t)clamp(scale_down(sum_3, multipliers[3], -(int32_t)shifts[3]) - 7, -128,
                127);
            for (int32_t block = 0; block < 2; block++) {
                int32_t sum_4 = 0;
                for (int32_t ky_1 = y_first; ky_1 < y_end; ky_1++) {
                    for (int32_t kx_1 = x_first; kx_1 < x_end; kx_1++) {
                        int32_t pixel_1 = (y_origin + ky_1) * 24 + (x_origin + kx_1) * 6;
                        int32_t tap_4 = (((4 + block) * 3 + ky_1) * 3 + kx_1) * 6;
                        for (int32_t i_1 = 0; i_1 < 6; i_1++) {
                            int32_t value_1 = (int32_t)input[pixel_1 + i_1] - 3;
                            sum_4 += value_1 * (int32_t)weights[tap_4 + i_1];
                        }
                    }
                }
                output[y * 24 + x * 6 + (4 + block)] = (int8_t)clamp(scale_down(sum_4, multipliers[4 + block],
                    -(int32_t)shifts[4 + block]) - 7, -128, 127);
            }
        }
    }
}

/* sum: add, 1x5x4x6 and 1x5x4x6 to 1x5x4x6; on the core */
void sum_0(const int8_t *restrict first, const int8_t *restrict second, int8_t *restrict output)
{
    for (int32_t i = 0; i < 120; i++) {
        int32_t a = requantize(((int32_t)first[i] + 7) * 1048576, 1073741824, 0);
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
