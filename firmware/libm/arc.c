/* SPDX-License-Identifier: Apache-2.0 */
/* Arc tangent of a ratio, and the functions derived from it. */
#include "math.h"
#include "polynomials.h"
#include "scaled.h"

static const uint64_t PI = 0x3243F6A8885A308DU; /* in units of 2^-60 */

/* Angle of smaller / larger. Neither is zero. */
static struct scaled angle(struct scaled smaller, struct scaled larger)
{
    const struct scaled ratio = {
        (normalised(smaller).mantissa >> 1) / larger.mantissa,
        normalised(smaller).exponent + 1 - larger.exponent,
        false,
    };
    return times_value(ratio, polynomial(ARC_TANGENT, ARC_TANGENT_COUNT, square(ratio)));
}

/* `whole` minus an angle if `less`, else plus, in units of 2^-60. */
static struct scaled beside(uint64_t whole, struct scaled angle, bool less)
{
    const uint64_t part = fixed_point(angle, 60);
    return (struct scaled){ less ? whole - part : whole + part, -60, false };
}

static struct scaled angle_of(float y, float x)
{
    const float up = fabsf(y), along = fabsf(x);
    const struct scaled zero = { 0, 0, false };
    const bool steep = up > along, back = is_negative(x);
    const struct scaled small = scaled_of(steep ? along : up), large = scaled_of(steep ? up : along);
    const struct scaled found = small.mantissa == 0 ? zero : angle(small, large);
    if (steep) {
        return beside(PI / 2, found, !back);
    }
    return back ? beside(PI, found, true) : found;
}

/* Finite value in place of x: 1 for an infinity, 0 for a finite number beside an infinity (`far`). */
static float tamed(float x, bool far)
{
    const float size = is_infinite(x) ? 1.0F : far ? 0.0F : x;
    return with_sign(size, is_negative(x));
}

float atan2f(float y, float x)
{
    if (is_nan(x) || is_nan(y)) {
        return not_a_number();
    }
    const bool far = is_infinite(x) || is_infinite(y);
    struct scaled found = angle_of(tamed(y, far), tamed(x, far));
    found.negative = is_negative(y);
    return rounded(found);
}

float atanf(float x)
{
    return atan2f(x, 1.0F);
}

/* Root of 1 - x^2, without cancellation near 1. */
static float beside_one(float x)
{
    return sqrtf((1.0F - x) * (1.0F + x));
}

float asinf(float x)
{
    return fabsf(x) <= 1.0F ? atan2f(x, beside_one(x)) : not_a_number();
}

float acosf(float x)
{
    return fabsf(x) <= 1.0F ? atan2f(beside_one(x), x) : not_a_number();
}
