/* SPDX-License-Identifier: Apache-2.0 */
/* Single-precision functions that float kernels may call. The device and npukit's reference on the host run this same
 * C, computed in integers (scaled.h): both give the same bits. tests/firmware measures errors. */
#ifndef MATH_H
#define MATH_H

#include <stdint.h>

/* The result depends on the arguments alone: a compiler may omit repeated calls and hoist calls out of loops. */
#define OF_ARGUMENTS __attribute__((const))

OF_ARGUMENTS float acosf(float x);
OF_ARGUMENTS float acoshf(float x);
OF_ARGUMENTS float asinf(float x);
OF_ARGUMENTS float asinhf(float x);
OF_ARGUMENTS float atan2f(float y, float x);
OF_ARGUMENTS float atanf(float x);
OF_ARGUMENTS float atanhf(float x);
OF_ARGUMENTS float ceilf(float x);
OF_ARGUMENTS float copysignf(float x, float y);
OF_ARGUMENTS float cosf(float x);
OF_ARGUMENTS float coshf(float x);
OF_ARGUMENTS float erff(float x);
OF_ARGUMENTS float exp10f(float x);
OF_ARGUMENTS float exp2f(float x);
OF_ARGUMENTS float expf(float x);
OF_ARGUMENTS float expm1f(float x);
OF_ARGUMENTS float fabsf(float x);
OF_ARGUMENTS float floorf(float x);
OF_ARGUMENTS float fmodf(float x, float y);
OF_ARGUMENTS float hypotf(float x, float y);
OF_ARGUMENTS float ldexpf(float x, int n);
OF_ARGUMENTS float log10f(float x);
OF_ARGUMENTS float log1pf(float x);
OF_ARGUMENTS float log2f(float x);
OF_ARGUMENTS float logf(float x);
float nanf(const char *tag);
OF_ARGUMENTS float nearbyintf(float x);
OF_ARGUMENTS float powf(float x, float y);
OF_ARGUMENTS float rintf(float x);
OF_ARGUMENTS float roundf(float x);
OF_ARGUMENTS float scalbnf(float x, int n);
OF_ARGUMENTS float sinf(float x);
OF_ARGUMENTS float sinhf(float x);
OF_ARGUMENTS float sqrtf(float x);
OF_ARGUMENTS float tanf(float x);
OF_ARGUMENTS float tanhf(float x);
OF_ARGUMENTS float truncf(float x);

/* The whole number next to x, ties to even, plus `zero`, within the limits of int8. What is not a number is `zero`. */
static inline int32_t int8_of(float x, int32_t zero)
{
#if defined __ARM_FEATURE_DSP && defined __ARM_FP && defined __thumb2__
    int32_t whole;
    __asm__("vcvtr.s32.f32 %1, %1\n\tvmov %0, %1\n\tqadd %0, %0, %2\n\tssat %0, #8, %0"
            : "=&r"(whole), "+t"(x) /* written before zero is read */
            : "r"(zero)
            : "cc");
    return whole;
#else
    const float low = (float)(-128 - zero), high = (float)(127 - zero);
    return (int32_t)rintf(x > low ? x < high ? x : high : x == x ? low : 0.0F) + zero;
#endif
}

/* int8_of(x / step, zero), with the inverse of the step. Only numbers next to a half are divided: in steps of 2^-16, a
 * product with the inverse differs from the quotient by less than 4 within int8, where each has three roundings of 2^-24
 * and a truncation. */
static inline int32_t int8_of_ratio(float x, float step, float inverse, int32_t zero)
{
#if defined __ARM_FEATURE_DSP && defined __ARM_FP && defined __thumb2__
    const int32_t half = zero * 65536 + 32768 + 4;
    float scaled = x * inverse;
    int32_t parts, whole;
    __asm__("vcvt.s32.f32 %1, %1, #16\n\tvmov %0, %1\n\tqadd %0, %0, %2"
            : "=&r"(parts), "+t"(scaled)
            : "r"(half)
            : "cc");
    if (__builtin_expect((parts & 0xfff8) == 0, 0))
        return int8_of(x / step, zero);
    __asm__("ssat %0, #8, %1, asr #16" : "=r"(whole) : "r"(parts) : "cc");
    return whole;
#else
    (void)inverse;
    return int8_of(x / step, zero);
#endif
}

#endif
