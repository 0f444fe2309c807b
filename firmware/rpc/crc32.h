/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 as Ethernet and zlib compute it. */
#ifndef CRC32_H
#define CRC32_H

#include <stdint.h>

/* The CRC of what `crc` already covers followed by `data`; start with 0. */
uint32_t crc32_update(uint32_t crc, const uint8_t *data, uint32_t size);

#endif
