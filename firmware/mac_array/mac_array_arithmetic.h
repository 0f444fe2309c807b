/* SPDX-License-Identifier: Apache-2.0 */
/* Fixed-point arithmetic as TFLite defines it, for computation on the core instead of the MAC array or after it. */
#ifndef MAC_ARRAY_ARITHMETIC_H
#define MAC_ARRAY_ARITHMETIC_H

#include <stdint.h>

static inline int32_t wrapping_add(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

static inline int32_t wrapping_shift(int32_t value, int32_t left)
{
    return (int32_t)((uint32_t)value << left);
}

/* Rounds half up. TFLite's nudge with its division towards 0 gives the same result for either sign. */
static inline int32_t doubling_high_multiply(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    return (int32_t)(((int64_t)a * b + (1LL << 30)) >> 31);
}

static inline int32_t divide_by_power_of_two(int32_t value, int32_t exponent)
{
    const int32_t mask = (int32_t)((1U << exponent) - 1U);
    const int32_t threshold = (mask >> 1) + (value < 0 ? 1 : 0);
    return (value >> exponent) + ((value & mask) > threshold ? 1 : 0);
}

static inline int32_t clamp(int64_t value, int32_t low, int32_t high)
{
    const int64_t raised = value < low ? low : value;
    return raised > high ? high : (int32_t)raised;
}

/* Shifts saturate at 31 in either direction. */
static inline int32_t requantize(int32_t value, int32_t multiplier, int32_t shift)
{
    enum { LARGEST_SHIFT = 31 };
    const int32_t left = clamp(shift, 0, LARGEST_SHIFT);
    const int32_t right = clamp(-(int64_t)shift, 0, LARGEST_SHIFT);
    return divide_by_power_of_two(doubling_high_multiply(wrapping_shift(value, left), multiplier), right);
}

#endif
