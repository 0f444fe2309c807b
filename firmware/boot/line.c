/* SPDX-License-Identifier: Apache-2.0 */
#include "line.h"

#include "hal.h"

static uint8_t bytes[LINE_BYTES];
static uint32_t first, count;

void line_take(void)
{
    while (count < LINE_BYTES && hal_link_readable()) {
        bytes[(first + count) % LINE_BYTES] = hal_link_read();
        count++;
    }
}

bool line_readable(void)
{
    line_take();
    return count > 0;
}

uint8_t line_read(void)
{
    const uint8_t byte = bytes[first];
    first = (first + 1) % LINE_BYTES;
    count--;
    return byte;
}
