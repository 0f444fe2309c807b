/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow Lite's fixed-point arithmetic, exact to the bit. Made from TIR by TVM's C code generator. */
#ifndef FIXED_POINT_H
#define FIXED_POINT_H

#include <stdint.h>

/* value, or the bound it is beyond. */
static inline int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* The high half of a b. */
static inline int32_t high_half(int32_t a, int32_t b)
{
#ifdef __ARM_ARCH_6M__ /* without products of 64 bits */
    uint32_t low_a = (uint32_t)a & (uint32_t)65535;
    uint32_t low_b = (uint32_t)b & (uint32_t)65535;
    int32_t high_a = a >> 16;
    int32_t high_b = b >> 16;
    int32_t first = high_a * (int32_t)low_b;
    int32_t second = (int32_t)low_a * high_b;
    uint32_t middle = ((low_a * low_b) >> (uint32_t)16) + ((uint32_t)first & (uint32_t)65535) + ((uint32_t)second &
        (uint32_t)65535);
    return high_a * high_b + (first >> 16) + (second >> 16) + (int32_t)(middle >> (uint32_t)16);
#else
    return (int32_t)(((int64_t)a * (int64_t)b) >> (int64_t)32);
#endif
}

/* The high half of 2 a b, rounded; not both may be INT32_MIN. */
static inline int32_t high_product(int32_t a, int32_t b)
{
#ifdef __ARM_ARCH_6M__ /* without products of 64 bits */
    uint32_t low_a = (uint32_t)a & (uint32_t)65535;
    uint32_t low_b = (uint32_t)b & (uint32_t)65535;
    int32_t high_a = a >> 16;
    int32_t high_b = b >> 16;
    int32_t first = high_a * (int32_t)low_b;
    int32_t second = (int32_t)low_a * high_b;
    uint32_t middle = ((low_a * low_b) >> (uint32_t)16) + ((uint32_t)first & (uint32_t)65535) + ((uint32_t)second &
        (uint32_t)65535);
    return (int32_t)(((uint32_t)(high_a * high_b + (first >> 16) + (second >> 16)) << (uint32_t)1) + (((middle >>
        (uint32_t)14) + (uint32_t)1) >> (uint32_t)1));
#else
    int64_t product = (int64_t)a * (int64_t)b;
    return (int32_t)((product + (int64_t)1073741824) >> (int64_t)31);
#endif
}

/* value / 2^bits, halves away from zero; 0 <= bits <= 31. */
static inline int32_t rounded_shift(int32_t value, int32_t bits)
{
    int32_t mask = (int32_t)(((uint32_t)1 << (uint32_t)bits) - (uint32_t)1);
    int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
    return (value >> bits) + ((value & mask) > threshold ? 1 : 0);
}

/* value * multiplier * 2^(-31 - bits), rounded twice as TensorFlow Lite does. */
static inline int32_t scale_down(int32_t value, int32_t multiplier, int32_t bits)
{
    return rounded_shift(high_product(value, multiplier), bits);
}

/* value * multiplier * 2^(shift - 31), rounded the same way; shifts to the left wrap. */
static inline int32_t requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    int32_t left = shift > 0 ? shift : 0;
    int32_t right = shift > 0 ? 0 : -shift;
    int32_t shifted = (int32_t)((uint32_t)value << (uint32_t)left);
    return scale_down(shifted, multiplier, right);
}

/* value * 2^bits, or the end of the range it is beyond. */
static inline int32_t saturating_shift(int32_t value, int32_t bits)
{
    int64_t wide = (int64_t)value * ((int64_t)1 << (int64_t)bits);
    return (int32_t)(wide < (int64_t)-2147483648 ? (int64_t)-2147483648 : (wide > (int64_t)2147483647 ?
        (int64_t)2147483647 : wide));
}

/* 1 / (1 + value) for 0 <= value < 1, all in Q0.31: three Newton steps in Q2.29. */
static inline int32_t reciprocal_of_one_plus(int32_t value)
{
    int32_t denominator = (int32_t)(((int64_t)value + (int64_t)2147483648) >> (int64_t)1);
    int32_t x = 1515870810 + high_product(denominator, -1010580540);
    for (int32_t step = 0; step < 3; step++) {
        int32_t error = 536870912 - high_product(denominator, x);
        x += saturating_shift(high_product(x, error), 2);
    }
    return saturating_shift(x, 1);
}

/* 2^46 / sqrt(value) of a value in 32 bits without sign, the first two of which are not 0. */
static inline int32_t inverse_root(int32_t value)
{
    uint32_t whole = (uint32_t)value;
    uint32_t root = (uint32_t)0;
    for (int32_t step = 0; step < 16; step++) {
        uint32_t tried = root + ((uint32_t)32768 >> (uint32_t)step);
        root = tried * tried <= whole ? tried : root;
    }
    uint32_t precise = (root << (uint32_t)15) + (((whole - root * root) << (uint32_t)14) / root);
    uint32_t first = ((uint32_t)2147483648 / root) << (uint32_t)15;
    int64_t error = (int64_t)2305843009213693952 - (int64_t)precise * (int64_t)first;
    int64_t result = (int64_t)first + (((error >> (int64_t)30) * (int64_t)first) >> (int64_t)31);
    return (int32_t)(result > (int64_t)2147483647 ? (int64_t)2147483647 : result);
}

#endif
