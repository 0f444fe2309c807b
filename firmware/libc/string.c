/* SPDX-License-Identifier: Apache-2.0 */
/* Memory functions, the same for every compiler. Compilers call them for copies of their own. This file is compiled
 * with builtins off: otherwise a compiler would turn memcpy into a call to memcpy. */
#include "string.h"

#include <stdint.h>

#undef memcpy
#undef memmove
#undef memset

enum { WORD = sizeof(uint32_t) };

/* Word access to objects of any type. */
typedef uint32_t __attribute__((may_alias)) any_word;

static int both_aligned(const void *left, const void *right)
{
    return (((uintptr_t)left | (uintptr_t)right) & (WORD - 1)) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    uint8_t *write = to;
    const uint8_t *read = from;
    if (both_aligned(to, from)) {
        for (; size >= WORD; size -= WORD, write += WORD, read += WORD) {
            *(any_word *)(void *)write = *(const any_word *)(const void *)read;
        }
    }
    while (size-- > 0) {
        *write++ = *read++;
    }
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    uint8_t *write = to;
    const uint8_t *read = from;
    if ((uintptr_t)to - (uintptr_t)from >= size) {
        return memcpy(to, from, size);
    }
    while (size-- > 0) {
        write[size] = read[size];
    }
    return to;
}

void *memset(void *to, int value, size_t size)
{
    uint8_t *write = to;
    const uint32_t word = (uint8_t)value * 0x01010101U;
    while (size > 0 && ((uintptr_t)write & (WORD - 1)) != 0) {
        *write++ = (uint8_t)value;
        size--;
    }
    for (; size >= WORD; size -= WORD, write += WORD) {
        *(any_word *)(void *)write = word;
    }
    while (size-- > 0) {
        *write++ = (uint8_t)value;
    }
    return to;
}

int memcmp(const void *left, const void *right, size_t size)
{
    const uint8_t *a = left;
    const uint8_t *b = right;
    for (size_t i = 0; i < size; i++) {
        if (a[i] != b[i]) {
            return a[i] < b[i] ? -1 : 1;
        }
    }
    return 0;
}

/* Names of Arm's run-time ABI, which compilers call for copies of their own. */

void __aeabi_memcpy(void *restrict to, const void *restrict from, size_t size);
void __aeabi_memcpy4(void *restrict to, const void *restrict from, size_t size);
void __aeabi_memcpy8(void *restrict to, const void *restrict from, size_t size);
void __aeabi_memmove(void *to, const void *from, size_t size);
void __aeabi_memmove4(void *to, const void *from, size_t size);
void __aeabi_memmove8(void *to, const void *from, size_t size);
void __aeabi_memset(void *to, size_t size, int value);
void __aeabi_memset4(void *to, size_t size, int value);
void __aeabi_memset8(void *to, size_t size, int value);
void __aeabi_memclr(void *to, size_t size);
void __aeabi_memclr4(void *to, size_t size);
void __aeabi_memclr8(void *to, size_t size);

#define COPY(name) \
    void name(void *restrict to, const void *restrict from, size_t size) \
    { \
        memcpy(to, from, size); \
    }
#define MOVE(name) \
    void name(void *to, const void *from, size_t size) \
    { \
        memmove(to, from, size); \
    }
#define SET(name) \
    void name(void *to, size_t size, int value) \
    { \
        memset(to, value, size); \
    }
#define CLEAR(name) \
    void name(void *to, size_t size) \
    { \
        memset(to, 0, size); \
    }

COPY(__aeabi_memcpy)
COPY(__aeabi_memcpy4)
COPY(__aeabi_memcpy8)
MOVE(__aeabi_memmove)
MOVE(__aeabi_memmove4)
MOVE(__aeabi_memmove8)
SET(__aeabi_memset)
SET(__aeabi_memset4)
SET(__aeabi_memset8)
CLEAR(__aeabi_memclr)
CLEAR(__aeabi_memclr4)
CLEAR(__aeabi_memclr8)
