/* What newlib's own header of this name says, as far as the files here use it. */
#ifndef MATH_CONFIG_H
#define MATH_CONFIG_H

static inline float __math_oflowf(unsigned negative)
{
    return negative ? -__builtin_inff() : __builtin_inff();
}

static inline float __math_divzerof(unsigned negative)
{
    return negative ? -__builtin_inff() : __builtin_inff();
}

static inline float __math_invalidf(float x)
{
    return (x - x) / (x - x);
}

#endif
