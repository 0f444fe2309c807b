/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include "bytes.h"

/* A polynomial of the words modulo FACTOR * 2^32 - 1, of which FACTOR is 1 / 2^32: a safe prime, and with one
 * multiplication a word the remainder stays below 2^64. */
static const uint32_t FACTOR = 0xFFFFFF4E;
enum { WORD = 4 };

static uint64_t add(uint64_t digest, uint32_t word)
{
    return (uint64_t)FACTOR * (uint32_t)digest + (digest >> 32) + word;
}

uint64_t digest_update(uint64_t digest, const uint8_t *data, uint32_t bytes)
{
    for (; bytes >= WORD; data += WORD, bytes -= WORD) {
        digest = add(digest, get32(data));
    }
    uint32_t rest = 0;
    for (uint32_t i = 0; i < bytes; i++) {
        rest |= (uint32_t)data[i] << 8 * i;
    }
    return bytes > 0 ? add(digest, rest) : digest;
}
