/* SPDX-License-Identifier: Apache-2.0 */
/* The four memory functions, the only ones of <string.h> in the firmware and generated code. */
#ifndef STRING_H
#define STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *left, const void *right, size_t size);

/* A freestanding compiler calls the functions even for four bytes of known size; the builtins become loads and
 * stores. */
#define memcpy(to, from, size) __builtin_memcpy(to, from, size)
#define memmove(to, from, size) __builtin_memmove(to, from, size)
#define memset(to, value, size) __builtin_memset(to, value, size)

#endif
