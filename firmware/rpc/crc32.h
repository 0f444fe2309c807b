/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 of Ethernet and zlib. */
#ifndef CRC32_H
#define CRC32_H

#include <stdint.h>

/* Extend `crc` by `data`. The first call takes a `crc` of 0. */
uint32_t crc32_update(uint32_t crc, const uint8_t *data, uint32_t size);

#endif
