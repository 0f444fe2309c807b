/* SPDX-License-Identifier: Apache-2.0 */
#include "frame.h"

#include "bytes.h"
#include "crc32.h"
#include "hal.h"

enum { LONGEST_BLOCK = 254 };

void frame_clear(struct frame *frame)
{
    frame->size = 0;
    frame->block_left = 0;
    frame->zero_follows = false;
    frame->broken = false;
}

static void append(struct frame *frame, uint8_t byte)
{
    if (frame->size == FRAME_BUFFER_BYTES) {
        frame->broken = true;
    } else {
        frame->buffer[frame->size++] = byte;
    }
}

static void decode(struct frame *frame, uint8_t byte)
{
    if (frame->block_left > 0) {
        append(frame, byte);
        frame->block_left--;
        return;
    }
    if (frame->zero_follows) {
        append(frame, 0);
    }
    frame->block_left = (uint8_t)(byte - 1);
    frame->zero_follows = frame->block_left != LONGEST_BLOCK;
}

static bool arrived_whole(struct frame *frame)
{
    if (frame->broken || frame->block_left > 0 || frame->size < FRAME_CRC_BYTES) {
        return false;
    }
    frame->size -= FRAME_CRC_BYTES;
    return crc32_update(0, frame->buffer, frame->size) == get32(frame->buffer + frame->size);
}

bool frame_receive(struct frame *frame, uint8_t byte)
{
    if (byte != 0) {
        decode(frame, byte);
        return false;
    }
    if (arrived_whole(frame)) {
        return true;
    }
    frame_clear(frame);
    return false;
}

/* Bytes from `start` up to the next zero, the longest block, or the end. */
static uint32_t block_length(const uint8_t *start, uint32_t left)
{
    uint32_t length = 0;
    while (length < left && length < LONGEST_BLOCK && start[length] != 0) {
        length++;
    }
    return length;
}

static void send_block(const uint8_t *start, uint32_t length)
{
    hal_link_write((uint8_t)(length + 1));
    for (uint32_t i = 0; i < length; i++) {
        hal_link_write(start[i]);
    }
}

void frame_send(uint8_t *packet, uint32_t size)
{
    put32(packet + size, crc32_update(0, packet, size));
    uint32_t end = size + FRAME_CRC_BYTES;
    uint32_t at = 0;
    bool more = true;
    hal_link_write(0); /* terminates a truncated frame before this one */
    while (more) {
        uint32_t length = block_length(packet + at, end - at);
        send_block(packet + at, length);
        at += length;
        more = at < end;
        if (length != LONGEST_BLOCK) {
            at++; /* a zero, implied by the block's length */
        }
    }
    hal_link_write(0);
}
