/* What the fuzzers of both servers share: a link whose bytes are the fuzzer's. */
#ifndef FUZZ_H
#define FUZZ_H

#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>

/* Taken when the server would sleep, or stop: all bytes are read. */
extern jmp_buf all_read;

/* Lay out what the server will read. The first byte of the input chooses: the bytes as they are on the wire; or
 * packets, each a length and so many bytes, which are sent in good frames, so that the fuzzer gets past the CRC. */
void fuzz_begin(const uint8_t *data, size_t size);

#endif
