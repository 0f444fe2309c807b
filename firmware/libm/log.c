/* SPDX-License-Identifier: Apache-2.0 */
/* Logarithms: base 2 in integers, and the functions derived from it. */
#include "math.h"
#include "polynomials.h"
#include "scaled.h"

static const uint64_t ONE = 0x8000000000000000U; /* in units of 2^-63, like the next two */
static const uint64_t LN_2 = 0x58B90BFBE8E7BCD6U;
static const uint64_t LOG10_2 = 0x268826A13EF3FDE6U;
static const uint32_t SQRT_2 = 0xB504F333U; /* in units of 2^-31 */

struct scaled log2_of_ratio(struct scaled d, uint64_t a, int32_t whole)
{
    d = normalised(d);
    const int32_t down = a >> 32 == 0 ? 0 : 32 - __builtin_clzll(a);
    const struct scaled s = { (d.mantissa >> 1) / (a >> down), d.exponent + 1 - down, d.negative };
    const uint64_t fixed = fixed_point(s, 64), squared = high_product(fixed, fixed);
    uint64_t sum = LOG2[0];
    for (uint32_t i = 1; i < LOG2_COUNT; i++) {
        sum = LOG2[i] + high_product(sum, squared);
    }
    const struct scaled unit = normalised(s);
    const struct scaled found = { high_product(unit.mantissa, sum), unit.exponent + 3, s.negative };
    if (whole == 0) {
        return found;
    }
    const int64_t part = (int64_t)fixed_point(found, 54);
    const int64_t value = (int64_t)whole * ((int64_t)1 << 54) + (found.negative ? -part : part);
    return (struct scaled){ (uint64_t)(value < 0 ? -value : value), -54, value < 0 };
}

struct scaled log2_of(struct scaled x)
{
    const struct scaled unit = normalised(x);
    const bool above = (uint32_t)(unit.mantissa >> 32) > SQRT_2;
    const int32_t whole = unit.exponent + 63 + above;
    /* Nearest power of two to x, in units of 2^x.exponent. */
    const uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(x.mantissa) + above);
    const uint64_t distance = above ? power - x.mantissa : x.mantissa - power;
    return log2_of_ratio((struct scaled){ distance, 0, above }, x.mantissa + power, whole);
}

static float rounded_log(struct scaled log2, uint64_t log_of_two)
{
    const struct scaled unit = normalised(log2);
    return rounded((struct scaled){ high_product(unit.mantissa, log_of_two), unit.exponent + 1, unit.negative });
}

static float logarithm(float x, uint64_t log_of_two)
{
    if (is_nan(x) || (is_negative(x) && x != 0.0F)) {
        return not_a_number();
    }
    if (x == 0.0F) {
        return infinity(true);
    }
    return is_infinite(x) ? x : rounded_log(log2_of(scaled_of(x)), log_of_two);
}

float logf(float x)
{
    return logarithm(x, LN_2);
}

float log2f(float x)
{
    return logarithm(x, ONE);
}

float log10f(float x)
{
    return logarithm(x, LOG10_2);
}

/* 1 + x, x between -1 and 2^30, not below 2^-28. */
static struct scaled one_more(struct scaled x)
{
    const uint64_t one = (uint64_t)1 << 52, part = fixed_point(x, 52);
    const uint64_t whole = x.negative ? one - part : one + part;
    const int32_t down = __builtin_ctzll(whole);
    return (struct scaled){ whole >> down, down - 52, false };
}

float log1pf(float x)
{
    if (is_nan(x) || x < -1.0F) {
        return not_a_number();
    }
    if (x == -1.0F) {
        return infinity(true);
    }
    const float magnitude = fabsf(x);
    if (magnitude < 0x1p-28F || is_infinite(x)) {
        return x;
    }
    const struct scaled part = scaled_of(x);
    if (magnitude < 0.25F) { /* x / (2 + x), both in units of 2^part.exponent */
        const uint64_t two = (uint64_t)2 << -part.exponent;
        const uint64_t sum = part.negative ? two - part.mantissa : two + part.mantissa;
        return rounded_log(log2_of_ratio((struct scaled){ part.mantissa, 0, part.negative }, sum, 0), LN_2);
    }
    return magnitude < 0x1p10F ? rounded_log(log2_of(one_more(part)), LN_2) : logf(x < 0x1p25F ? x + 1.0F : x);
}

float asinhf(float x)
{
    const float a = fabsf(x);
    if (is_nan(x)) {
        return not_a_number();
    }
    if (a >= 0x1p12F) {
        return with_sign(logf(a * 0.5F) + 1.38629436F, x < 0.0F); /* twice log 2 */
    }
    return a < 0x1p-12F ? x : with_sign(log1pf(a + a * a / (1.0F + sqrtf(a * a + 1.0F))), x < 0.0F);
}

float acoshf(float x)
{
    if (!(x >= 1.0F)) {
        return not_a_number();
    }
    if (x >= 0x1p12F) {
        return logf(x * 0.5F) + 1.38629436F;
    }
    const float t = x - 1.0F;
    return log1pf(t + sqrtf(t * (x + 1.0F)));
}

float atanhf(float x)
{
    const float a = fabsf(x);
    if (!(a <= 1.0F)) {
        return not_a_number();
    }
    return a < 0x1p-12F ? x : with_sign(0.5F * log1pf(2.0F * a / (1.0F - a)), x < 0.0F);
}
