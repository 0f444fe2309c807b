/* SPDX-License-Identifier: Apache-2.0 */
/* Sine, cosine and tangent: reduction by quarter turns in integers, then polynomials. */
#include "math.h"
#include "polynomials.h"
#include "scaled.h"

/* x in quarter turns: the nearest whole number, and the rest. */
struct turns {
    uint32_t quarters; /* modulo 4 */
    struct scaled rest;
};

/* 2 / pi in units of 2^-224, the highest word first, to as many bits as the largest float needs. */
static const uint32_t TWO_OVER_PI[] = { 0xA2F9836EU, 0x4E441529U, 0xFC2757D1U, 0xF534DDC0U, 0xDB629599U, 0x3C439041U,
                                        0xFE5163ABU };

/* The 32 bits of 2 / pi from bit `first` on. */
static uint32_t window(uint32_t first)
{
    const uint32_t word = first / 32, bit = first % 32;
    return bit == 0 ? TWO_OVER_PI[word] : TWO_OVER_PI[word] << bit | TWO_OVER_PI[word + 1] >> (32 - bit);
}

/* Number of 96 bits. */
struct wide {
    uint32_t high;
    uint64_t low;
};

/* The lowest 96 bits of (m * 96 bits of 2 / pi from `first` on) >> down. */
static struct wide product(uint32_t m, uint32_t first, uint32_t down)
{
    const uint64_t p0 = (uint64_t)m * window(first + 64);
    const uint64_t p1 = (uint64_t)m * window(first + 32) + (p0 >> 32);
    const uint64_t p2 = (uint64_t)m * window(first) + (p1 >> 32);
    const uint64_t low = p1 << 32 | (uint32_t)p0;
    if (down == 0) {
        return (struct wide){ (uint32_t)p2, low };
    }
    return (struct wide){ (uint32_t)(p2 >> down), low >> down | p2 << (64 - down) };
}

/* x in quarter turns. Skips words of 2 / pi that contribute only whole turns. */
static struct turns turns_of(float x)
{
    const struct scaled part = scaled_of(x);
    if (fabsf(x) < 0.785F) {
        const uint64_t two_over_pi = (uint64_t)TWO_OVER_PI[0] << 32 | TWO_OVER_PI[1];
        return (struct turns){ 0, { high_product(part.mantissa << 40, two_over_pi), part.exponent - 40, part.negative } };
    }
    const uint32_t first = part.exponent > 2 ? (uint32_t)part.exponent - 2 : 0;
    const uint32_t down = part.exponent < 2 ? (uint32_t)(2 - part.exponent) : 0;
    const struct wide turns = product((uint32_t)part.mantissa, first, down); /* in units of 2^-94 quarter turns */
    const uint64_t rest = (uint64_t)turns.high << 34 | turns.low >> 30;
    const bool up = rest >> 63 != 0;
    const uint32_t quarters = (turns.high >> 30) + up;
    const struct scaled near = { up ? (uint64_t)0 - rest : rest, -64, part.negative != up };
    return (struct turns){ part.negative ? (uint32_t)0 - quarters : quarters, near };
}

/* Sine of the rest, and cosine of the rest in units of 2^-30. */
struct sine_cosine {
    struct scaled sine;
    int32_t cosine;
};

static struct sine_cosine sine_cosine(struct scaled rest)
{
    const int32_t squared = square(rest);
    const struct scaled sine = times_value(rest, polynomial(SINE, SINE_COUNT, squared));
    return (struct sine_cosine){ sine, polynomial(COSINE, COSINE_COUNT, squared) };
}

/* Sine of the rest plus the quarter turns. */
static float sine(struct turns turns)
{
    const struct sine_cosine both = sine_cosine(turns.rest);
    const bool negative = (turns.quarters & 2) != 0;
    if ((turns.quarters & 1) != 0) {
        return rounded((struct scaled){ (uint32_t)both.cosine, -30, negative });
    }
    return rounded((struct scaled){ both.sine.mantissa, both.sine.exponent, both.sine.negative != negative });
}

float sinf(float x)
{
    if (is_nan(x) || is_infinite(x)) {
        return not_a_number();
    }
    return sine(turns_of(x));
}

float cosf(float x)
{
    if (is_nan(x) || is_infinite(x)) {
        return not_a_number();
    }
    struct turns turns = turns_of(x);
    turns.quarters++;
    return sine(turns);
}

float tanf(float x)
{
    if (is_nan(x) || is_infinite(x)) {
        return not_a_number();
    }
    const struct turns turns = turns_of(x);
    const struct sine_cosine both = sine_cosine(turns.rest);
    const struct scaled sine = normalised(both.sine);
    if ((turns.quarters & 1) != 0) {
        const uint64_t ratio = ((uint64_t)(uint32_t)both.cosine << 32) / (sine.mantissa >> 32);
        return rounded((struct scaled){ ratio, -94 - sine.exponent, !sine.negative });
    }
    return rounded((struct scaled){ sine.mantissa / (uint32_t)both.cosine, sine.exponent + 30, sine.negative });
}
