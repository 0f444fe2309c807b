/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as integers with an exponent. The functions of math.h compute in integers except for their last step: every
 * compiler and every core gives the same bits, and cores without an FPU are not slower. */
#ifndef SCALED_H
#define SCALED_H

#include <stdbool.h>
#include <stdint.h>

/* mantissa * 2^exponent, below zero if `negative`. */
struct scaled {
    uint64_t mantissa;
    int32_t exponent;
    bool negative;
};

static inline uint32_t bits_of(float x)
{
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float float_of(uint32_t bits)
{
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

static inline bool is_nan(float x)
{
    return (bits_of(x) & 0x7FFFFFFFU) > 0x7F800000U;
}

static inline bool is_infinite(float x)
{
    return (bits_of(x) & 0x7FFFFFFFU) == 0x7F800000U;
}

static inline bool is_negative(float x)
{
    return bits_of(x) >> 31 != 0;
}

static inline float infinity(bool negative)
{
    return float_of(negative ? 0xFF800000U : 0x7F800000U);
}

static inline float not_a_number(void)
{
    return float_of(0x7FC00000U);
}

static inline float with_sign(float x, bool negative)
{
    return float_of((bits_of(x) & 0x7FFFFFFFU) | (negative ? 0x80000000U : 0));
}

/* Mantissa and exponent of a finite number. The mantissa has 24 bits unless it is zero. */
static inline struct scaled scaled_of(float x)
{
    const uint32_t bits = bits_of(x), biased = bits >> 23 & 0xFF, fraction = bits & 0x7FFFFFU;
    if (biased != 0) {
        return (struct scaled){ fraction | 0x800000U, (int32_t)biased - 150, bits >> 31 != 0 };
    }
    const int32_t up = fraction == 0 ? 0 : __builtin_clz(fraction) - 8;
    return (struct scaled){ (uint64_t)fraction << up, -149 - up, bits >> 31 != 0 };
}

/* The same number with the mantissa's highest bit set. Zero stays zero. */
static inline struct scaled normalised(struct scaled x)
{
    const int32_t up = x.mantissa == 0 ? 0 : __builtin_clzll(x.mantissa);
    return (struct scaled){ x.mantissa << up, x.exponent - up, x.negative };
}

/* Upper half of a product. */
static inline uint64_t high_product(uint64_t a, uint64_t b)
{
    const uint64_t a1 = a >> 32, a0 = (uint32_t)a, b1 = b >> 32, b0 = (uint32_t)b;
    const uint64_t middle = (a0 * b0 >> 32) + (uint32_t)(a1 * b0) + (uint32_t)(a0 * b1);
    return a1 * b1 + (a1 * b0 >> 32) + (a0 * b1 >> 32) + (middle >> 32);
}

/* Magnitude in units of 2^-`fraction_bits`, rounded down. Saturates at UINT64_MAX. */
static inline uint64_t fixed_point(struct scaled x, int32_t fraction_bits)
{
    const int32_t up = x.exponent + fraction_bits;
    if (x.mantissa == 0 || up <= -64) {
        return 0;
    }
    if (up > __builtin_clzll(x.mantissa)) {
        return UINT64_MAX;
    }
    return up >= 0 ? x.mantissa << up : x.mantissa >> -up;
}

/* Polynomial at `x` / 2^31. `coefficients`: `count` in units of 2^-30, the highest first. */
static inline int32_t polynomial(const int32_t *coefficients, uint32_t count, int32_t x)
{
    int32_t sum = coefficients[0];
    for (uint32_t i = 1; i < count; i++) {
        sum = coefficients[i] + (int32_t)((int64_t)sum * x >> 31);
    }
    return sum;
}

/* Square in units of 2^-31. The magnitude of x is at most 1. */
static inline int32_t square(struct scaled x)
{
    const uint64_t fixed = fixed_point(x, 32), squared = fixed >> 32 != 0 ? UINT32_MAX : fixed * fixed >> 32;
    return (int32_t)(squared >> 1);
}

/* x times a polynomial's value, which is positive and below 2. */
static inline struct scaled times_value(struct scaled x, int32_t value)
{
    x = normalised(x);
    return (struct scaled){ (x.mantissa >> 32) * (uint32_t)value, x.exponent + 2, x.negative };
}

/* Nearest float, ties to even. */
static inline float rounded(struct scaled x)
{
    if (x.mantissa == 0) {
        return with_sign(0.0F, x.negative);
    }
    x = normalised(x);
    const int32_t biased = x.exponent + 63 + 127;
    const int32_t drop = biased > 0 ? 40 : 41 - biased;
    if (biased >= 255) {
        return infinity(x.negative);
    }
    if (drop > 64) {
        return with_sign(0.0F, x.negative);
    }
    uint32_t kept = drop == 64 ? 0 : (uint32_t)(x.mantissa >> drop);
    const uint64_t rest = drop == 64 ? x.mantissa : x.mantissa << (64 - drop);
    const uint64_t half = (uint64_t)1 << 63;
    kept += rest > half || (rest == half && (kept & 1) != 0);
    return with_sign(float_of(biased > 0 ? ((uint32_t)(biased - 1) << 23) + kept : kept), x.negative);
}

/* 2^x, x in units of 2^-48. The mantissa is in units of 2^-30, in [0.7, 1.42). */
struct scaled power_of_two(int64_t x);

/* x * c in units of 2^-48, c in units of 2^-61. Saturates at 2^56, beyond a float's exponents. */
int64_t times_constant(float x, uint64_t c);

/* Base-2 logarithm of a number other than zero, to 36 bits. */
struct scaled log2_of(struct scaled x);

/* `whole` plus the base-2 logarithm of (1 + d / a) / (1 - d / a). d / a is at most 0.172; `a` may be rounded to 32
 * bits. */
struct scaled log2_of_ratio(struct scaled d, uint64_t a, int32_t whole);

#endif
