/* SPDX-License-Identifier: Apache-2.0 */
/* Rounding, remainders, exponents, roots: exact, or rounded once. */
#include "math.h"
#include "scaled.h"

float fabsf(float x)
{
    return float_of(bits_of(x) & 0x7FFFFFFFU);
}

float copysignf(float x, float y)
{
    return with_sign(x, is_negative(y));
}

float sqrtf(float x)
{
    return __builtin_sqrtf(x);
}

/* x without its fraction. `rest`: the bits of the fraction. */
static float cut(float x, uint32_t *rest)
{
    const uint32_t bits = bits_of(x);
    const int32_t exponent = (int32_t)(bits >> 23 & 0xFF) - 127;
    if (exponent >= 23) {
        *rest = 0;
        return x;
    }
    const uint32_t ones = exponent < 0 ? 0x7FFFFFFFU : 0x7FFFFFU >> exponent;
    *rest = bits & ones;
    return float_of(bits & ~ones);
}

float truncf(float x)
{
    uint32_t rest;
    return cut(x, &rest);
}

float floorf(float x)
{
    uint32_t rest;
    const float whole = cut(x, &rest);
    return rest != 0 && is_negative(x) ? whole - 1.0F : whole;
}

float ceilf(float x)
{
    uint32_t rest;
    const float whole = cut(x, &rest);
    return rest != 0 && !is_negative(x) ? whole + 1.0F : whole;
}

float roundf(float x)
{
    const float whole = truncf(x), rest = fabsf(x - whole);
    return is_infinite(x) || rest < 0.5F ? whole : with_sign(fabsf(whole) + 1.0F, is_negative(x));
}

/* Ties to even. A float from 2^23 on has no fraction. */
float rintf(float x)
{
    const float size = fabsf(x);
    if (!(size < 0x1p23F)) {
        return x;
    }
    const volatile float large = size + 0x1p23F; /* volatile: a compiler must not simplify the sum, which rounds */
    return with_sign(large - 0x1p23F, is_negative(x));
}

float nearbyintf(float x)
{
    return rintf(x);
}

float nanf(const char *tag)
{
    (void)tag;
    return not_a_number();
}

float ldexpf(float x, int n)
{
    if (is_nan(x) || is_infinite(x)) {
        return x;
    }
    struct scaled part = scaled_of(x);
    part.exponent += n > 1000 ? 1000 : n < -1000 ? -1000 : n;
    return rounded(part);
}

float scalbnf(float x, int n)
{
    return ldexpf(x, n);
}

/* x modulo y: eight bits of the quotient at a time. */
float fmodf(float x, float y)
{
    if (is_nan(x) || is_nan(y) || is_infinite(x) || y == 0.0F) {
        return not_a_number();
    }
    if (is_infinite(y) || fabsf(x) < fabsf(y)) {
        return x;
    }
    struct scaled rest = scaled_of(x);
    const struct scaled by = scaled_of(y);
    uint32_t mantissa = (uint32_t)rest.mantissa % (uint32_t)by.mantissa;
    for (int32_t left = rest.exponent - by.exponent; left > 0; left -= 8) {
        mantissa = (mantissa << (left < 8 ? left : 8)) % (uint32_t)by.mantissa;
    }
    return rounded((struct scaled){ mantissa, by.exponent, is_negative(x) });
}

/* Scaled by a power of two, against overflow and underflow of the squares. */
float hypotf(float x, float y)
{
    const float a = fabsf(x), b = fabsf(y), larger = a > b ? a : b;
    if (is_infinite(a) || is_infinite(b)) {
        return infinity(false);
    }
    if (is_nan(x) || is_nan(y)) {
        return not_a_number();
    }
    if (larger == 0.0F) {
        return larger;
    }
    const int32_t up = -23 - scaled_of(larger).exponent;
    const float p = ldexpf(a, up), q = ldexpf(b, up);
    return ldexpf(sqrtf(p * p + q * q), -up);
}
