/* SPDX-License-Identifier: Apache-2.0 */
/* Frames on the link: a packet and its CRC-32, COBS encoded, between zero bytes. */
#ifndef FRAME_H
#define FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum {
    FRAME_CRC_BYTES = 4,
    FRAME_PACKET_BYTES = 16 + 512, /* the largest packet: a reply's header and 512 bytes */
    FRAME_BUFFER_BYTES = FRAME_PACKET_BYTES + FRAME_CRC_BYTES,
};

/* Receiver of a frame: a COBS decoder that writes directly into the buffer. Initially all zero. */
struct frame {
    uint8_t buffer[FRAME_BUFFER_BYTES];
    uint32_t size;       /* bytes decoded */
    uint8_t block_left;  /* bytes still to come of the current COBS block */
    bool zero_follows;   /* the block ends in a zero, unless the frame ends first */
    bool broken;         /* frame too long: dropped at its end */
};

/* Take one byte from the link. True if the byte completes an intact frame, whose packet is the first `size` bytes of
 * the buffer. */
bool frame_receive(struct frame *frame, uint8_t byte);

/* Reset the receiver for the next frame. */
void frame_clear(struct frame *frame);

/* Send `size` bytes of `packet` as a frame. The CRC overwrites the four bytes behind them. */
void frame_send(uint8_t *packet, uint32_t size);

#endif
