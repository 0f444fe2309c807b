#include "fuzz.h"

#include <string.h>

#include "frame.h"
#include "hal.h"

enum { MOST_BYTES = 1 << 16 };

jmp_buf all_read;

static uint8_t wire[MOST_BYTES];
static size_t wire_read, wire_size;
static bool writing_wire;

static void put(uint8_t byte)
{
    if (wire_size < sizeof wire) {
        wire[wire_size++] = byte;
    }
}

static void put_packets(const uint8_t *data, size_t size)
{
    uint8_t packet[256 + FRAME_CRC_BYTES];
    writing_wire = true;
    while (size > 0) {
        const size_t wanted = data[0], length = wanted < size - 1 ? wanted : size - 1;
        memcpy(packet, data + 1, length);
        frame_send(packet, (uint32_t)length);
        data += 1 + length;
        size -= 1 + length;
    }
    writing_wire = false;
}

void fuzz_begin(const uint8_t *data, size_t size)
{
    wire_read = wire_size = 0;
    put(0); /* whatever was begun before ends */
    if (size > 0 && (data[0] & 1) != 0) {
        put_packets(data + 1, size - 1);
    } else {
        for (size_t i = 1; i < size; i++) {
            put(data[i]);
        }
    }
}

bool hal_link_readable(void)
{
    return wire_read < wire_size;
}

uint8_t hal_link_read(void)
{
    return wire[wire_read++];
}

void hal_link_write(uint8_t byte)
{
    if (writing_wire) {
        put(byte);
    }
}

bool hal_link_present(void)
{
    return true;
}

void hal_init(void) {}

void hal_wait(void)
{
    longjmp(all_read, 1);
}
