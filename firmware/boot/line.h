/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer for the host's bytes while the loader waits for the flash. */
#ifndef LINE_H
#define LINE_H

#include <stdbool.h>
#include <stdint.h>

enum { LINE_BYTES = 4096 };

/* Take all bytes that have arrived. Between two calls no more may arrive than the UART holds. */
void line_take(void);

/* True if there is a byte to read. */
bool line_readable(void);

/* The next byte. */
uint8_t line_read(void);

#endif
