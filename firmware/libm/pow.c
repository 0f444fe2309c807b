/* SPDX-License-Identifier: Apache-2.0 */
/* x to the power of y: 2^(y log2 x), in integers. */
#include "math.h"
#include "scaled.h"

/* Whether a number is whole, and odd. */
struct whole {
    bool is_whole;
    bool is_odd;
};

static struct whole whole_of(float y)
{
    const struct scaled part = scaled_of(y);
    if (part.exponent > 0) {
        return (struct whole){ true, false };
    }
    if (part.exponent < -24) {
        return (struct whole){ y == 0.0F, false };
    }
    const uint64_t ones = ((uint64_t)1 << -part.exponent) - 1;
    return (struct whole){ (part.mantissa & ones) == 0, (part.mantissa >> -part.exponent & 1) != 0 };
}

/* Power of zero or infinity: zero or infinity, negative for odd powers of a negative base. */
static float extreme(bool grows, bool negative)
{
    return grows ? infinity(negative) : with_sign(0.0F, negative);
}

static float finite_power(float x, float y, bool negative)
{
    const struct scaled base = scaled_of(fabsf(x)), log2 = normalised(log2_of(base)), part = scaled_of(y);
    const uint64_t product = high_product(log2.mantissa, part.mantissa << 40);
    const uint64_t value = fixed_point((struct scaled){ product, log2.exponent + part.exponent + 24, false }, 48);
    const int64_t most = (int64_t)1 << 56;
    const int64_t magnitude = value >= (uint64_t)most ? most - 1 : (int64_t)value;
    const bool below = log2.negative != part.negative;
    return with_sign(rounded(power_of_two(below ? -magnitude : magnitude)), negative);
}

float powf(float x, float y)
{
    if (y == 0.0F || x == 1.0F) {
        return 1.0F;
    }
    if (is_nan(x) || is_nan(y)) {
        return not_a_number();
    }
    const float size = fabsf(x);
    if (is_infinite(y)) {
        return size == 1.0F ? 1.0F : extreme((size > 1.0F) == (y > 0.0F), false);
    }
    const struct whole whole = whole_of(y);
    const bool negative = is_negative(x) && whole.is_odd && whole.is_whole;
    if (size == 0.0F || is_infinite(x)) {
        return extreme((size != 0.0F) == (y > 0.0F), negative);
    }
    if (is_negative(x) && !whole.is_whole) {
        return not_a_number();
    }
    return finite_power(x, y, negative);
}
