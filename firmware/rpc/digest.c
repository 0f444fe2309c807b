/* SPDX-License-Identifier: Apache-2.0 */
#include "digest.h"

#include "bytes.h"

/* Polynomial of the words, evaluated at FACTOR modulo the safe prime FACTOR * 2^32 - 1, where FACTOR is the inverse of
 * 2^32. One multiplication a word keeps the remainder below 2^64. */
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
