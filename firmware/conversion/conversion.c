/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions between the host's floats, or bytes of another meaning, and the network's integers. */
#include "bytes.h"
#include "net.h"

static float float_at(const uint8_t *at)
{
    const union {
        uint32_t bits;
        float value;
    } number = {get32(at)};
    return number.value;
}

static float limited(float steps, float low, float high)
{
    if (!(steps > low)) {
        return low; /* NaN, too */
    }
    return steps < high ? steps : high;
}

static int32_t halves_to_even(float steps)
{
    const float magic = 12582912.0f; /* 1.5 * 2^23 leaves no bits for a fraction: the addition rounds */
    return (int32_t)((steps + magic) - magic);
}

static int32_t halves_away(float steps)
{
    const int32_t whole = (int32_t)steps;
    const float fraction = steps - (float)whole;
    return whole + (int32_t)(fraction + fraction);
}

void net_quantize(const struct net_conversion *by, uint32_t first, const uint8_t *from, uint8_t *to, uint32_t count)
{
    const float low = (float)(-128 - by->zero_point), high = (float)(127 - by->zero_point);
    for (uint32_t i = 0; i < count; i++) {
        const struct net_scale *scale = &by->scales[(first + i) / by->channel_elements % by->channels];
        const float steps = limited((float_at(from + 4 * i) - scale->offset) / scale->step, low, high);
        to[i] = (uint8_t)((by->away ? halves_away(steps) : halves_to_even(steps)) + by->zero_point);
    }
}

void net_dequantize(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int32_t number = by->is_signed ? (int8_t)from[i] : from[i];
        const union {
            float value;
            uint32_t bits;
        } real = {(float)(number - by->zero_point) * by->scales->step};
        put32(to + 4 * i, real.bits);
    }
}

void net_look_up(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        to[i] = by->table[from[i]];
    }
}

void net_move(const struct net_conversion *by, const uint8_t *from, uint8_t *to, uint32_t count)
{
    (void)by;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = from[i];
    }
}
