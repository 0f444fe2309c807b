/* SPDX-License-Identifier: Apache-2.0 */
/* Error function, piece by piece. */
#include "math.h"
#include "polynomials.h"
#include "scaled.h"

/* erf in [1, 2) and [2, 4): 1 minus a polynomial around the middle of the interval. */
static struct scaled far(uint64_t size)
{
    const int64_t one = (int64_t)1 << 31;
    const int64_t x = (int64_t)size;
    const int32_t left = x < 2 * one ? polynomial(ERF_FROM_1, ERF_FROM_1_COUNT, (int32_t)(x - 3 * one / 2))
                                     : polynomial(ERF_FROM_2, ERF_FROM_2_COUNT, (int32_t)((x - 3 * one) / 2));
    return (struct scaled){ ((uint64_t)1 << 30) - (uint32_t)(left < 0 ? 0 : left), -30, false };
}

float erff(float x)
{
    if (is_nan(x)) {
        return not_a_number();
    }
    const struct scaled part = scaled_of(is_infinite(x) ? with_sign(4.0F, is_negative(x)) : x);
    const uint64_t size = fixed_point(part, 31);
    if (size >> 31 == 0) {
        return rounded(times_value(part, polynomial(ERF, ERF_COUNT, square(part))));
    }
    return with_sign(size >> 33 == 0 ? rounded(far(size)) : 1.0F, part.negative);
}
