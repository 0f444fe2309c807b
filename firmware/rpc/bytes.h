/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian numbers in byte buffers, at any alignment. */
#ifndef BYTES_H
#define BYTES_H

#include <stdint.h>

static inline uint32_t get16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

static inline uint32_t get32(const uint8_t *at)
{
    return get16(at) | get16(at + 2) << 16;
}

static inline uint8_t *put16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
    return at + 2;
}

static inline uint8_t *put32(uint8_t *at, uint32_t value)
{
    return put16(put16(at, value), value >> 16);
}

static inline uint8_t *put64(uint8_t *at, uint64_t value)
{
    return put32(put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}

#endif
