/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials: 2^x in integers, and the functions derived from it. */
#include "math.h"
#include "polynomials.h"
#include "scaled.h"

static const uint64_t ONE = 0x2000000000000000U;      /* in units of 2^-61, like the next two */
static const uint64_t LOG2_E = 0x2E2A8ECA5705FC2FU;
static const uint64_t LOG2_10 = 0x6A4D3C25E68DC57FU;

#define MOST ((int64_t)1 << 56)

struct scaled power_of_two(int64_t x)
{
    const int64_t whole = (x + ((int64_t)1 << 47)) >> 48;
    const int32_t fraction = (int32_t)((x - whole * ((int64_t)1 << 48)) >> 17);
    const int32_t mantissa = polynomial(POWER_OF_TWO, POWER_OF_TWO_COUNT, fraction);
    return (struct scaled){ (uint32_t)mantissa, (int32_t)whole - 30, false };
}

int64_t times_constant(float x, uint64_t c)
{
    const struct scaled part = scaled_of(x);
    const uint32_t mantissa = (uint32_t)part.mantissa;
    const uint64_t product = mantissa * (c >> 32) + (mantissa * (uint64_t)(uint32_t)c >> 32);
    const int32_t up = part.exponent + 19;
    int64_t magnitude = MOST;
    if (up <= 3) { /* x below 256 */
        magnitude = (int64_t)(up >= 0 ? product << up : up > -64 ? product >> -up : 0);
    }
    return part.negative ? -magnitude : magnitude;
}

static struct scaled power(float x, uint64_t log2_of_base)
{
    return power_of_two(times_constant(x, log2_of_base));
}

static bool is_below(float x, float limit)
{
    return bits_of(with_sign(x, false)) < bits_of(limit);
}

__attribute__((noinline)) static float rounded_power(float x, uint64_t log2_of_base)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    if (!is_below(x, 152.0F)) { /* limit of the widest range, of 2^x: 2^-150 is the first that rounds to 0 */
        return is_negative(x) ? 0.0F : infinity(false);
    }
    return rounded(power(x, log2_of_base));
}

/* In float, because networks call it most: 2^n * e^r, r within half of log 2. */
float expf(float x)
{
    if (!is_below(x, 87.0F)) {
        return x < -104.0F ? 0.0F : rounded_power(x, LOG2_E);
    }
    const float shifted = x * 0x1.715476p+0F + 0x1.8p+23F, n = shifted - 0x1.8p+23F;
    const float r = (x - n * 0x1.62Ep-1F) - n * 0x1.0BFBE8p-15F;
    _Static_assert(EXP_COUNT == 5, "unrolled: a loop would take half as long again");
    const float sum = (((EXP[0] * r + EXP[1]) * r + EXP[2]) * r + EXP[3]) * r + EXP[4];
    return float_of(bits_of(1.0F + (r + r * r * sum)) + (bits_of(shifted) << 23));
}

float exp2f(float x)
{
    return rounded_power(x, ONE);
}

float exp10f(float x)
{
    return rounded_power(x, LOG2_10);
}

/* e^x - 1, for magnitudes of x from 0.5 on. */
static struct scaled less_one(float x)
{
    const struct scaled found = power(x, LOG2_E);
    const struct scaled one = { (uint64_t)1 << 32, -32, false };
    if (found.exponent > 0) {
        return found;
    }
    const uint64_t value = fixed_point(found, 32);
    const bool negative = value < one.mantissa;
    return (struct scaled){ negative ? one.mantissa - value : value - one.mantissa, -32, negative };
}

float expm1f(float x)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    if (is_infinite(x)) {
        return is_negative(x) ? -1.0F : x;
    }
    if (!is_below(x, 0.5F)) {
        return rounded(less_one(x));
    }
    const struct scaled part = scaled_of(x);
    const int32_t magnitude = (int32_t)fixed_point(part, 31);
    return rounded(times_value(part, polynomial(EXPM1, EXPM1_COUNT, part.negative ? -magnitude : magnitude)));
}

/* Half of e^x - e^-x if `minus`, else of e^x + e^-x; x at least 0. */
static float half_of_both(float x, bool minus)
{
    const struct scaled more = power(x, LOG2_E), less = power(-x, LOG2_E);
    const int32_t down = more.exponent - less.exponent;
    const uint64_t large = more.mantissa << 32, small = down < 64 ? (less.mantissa << 32) >> down : 0;
    return rounded((struct scaled){ minus ? large - small : large + small, more.exponent - 33, false });
}

float sinhf(float x)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    if (is_infinite(x)) {
        return x;
    }
    if (is_below(x, 1.0F)) {
        const struct scaled part = scaled_of(x);
        return rounded(times_value(part, polynomial(SINH, SINH_COUNT, square(part))));
    }
    return with_sign(half_of_both(fabsf(x), true), is_negative(x));
}

float coshf(float x)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    return is_infinite(x) ? infinity(false) : half_of_both(fabsf(x), false);
}

/* 1 - 2 / (e^2x + 1), x from 0.5 to 10. */
static struct scaled from_one(float x)
{
    const struct scaled found = power(2.0F * x, LOG2_E);
    const uint64_t more = fixed_point(found, 30) + ((uint64_t)1 << 30);
    const struct scaled divisor = normalised((struct scaled){ more, -30, false });
    const uint64_t ratio = ((uint64_t)1 << 63) / (divisor.mantissa >> 32);
    const uint64_t part = fixed_point((struct scaled){ ratio, -63 - 32 + 1 - divisor.exponent, false }, 40);
    return (struct scaled){ ((uint64_t)1 << 40) - part, -40, false };
}

float tanhf(float x)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    if (is_below(x, 0.5F)) {
        const struct scaled part = scaled_of(x);
        return rounded(times_value(part, polynomial(TANH, TANH_COUNT, square(part))));
    }
    return with_sign(is_below(x, 10.0F) ? rounded(from_one(fabsf(x))) : 1.0F, is_negative(x));
}
