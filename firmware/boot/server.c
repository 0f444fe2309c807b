/* SPDX-License-Identifier: Apache-2.0 */
#include "server.h"

#include <stdbool.h>

#include "bytes.h"
#include "flash.h"
#include "flash_board.h"
#include "frame.h"
#include "hal.h"
#include "line.h"
#include "pause.h"
#include "requests.h"

/* Packets as in docs/protocol.md. */
enum { PROTOCOL = 1, REPLY = 0x80, HEADER_BYTES = 8, REPLY_HEADER_BYTES = 16 };

/* Cycles until the last byte of a reply is on the wire: more than the UART holds. */
enum { CYCLES_TO_SEND = 32 * 10 * (BOARD_CLOCK_HZ / BOARD_UART_BAUD) };

static const char *const request_texts[] = {
    [REQUEST_DONE] = "",
    [REQUEST_OTHER_PROTOCOL] = "the loader speaks another protocol version",
    [REQUEST_UNKNOWN] = "the board waits in its loader, which knows no such request",
    [REQUEST_BAD_ARGUMENTS] = "arguments of the wrong size",
};

static const char *const update_texts[] = {
    [UPDATE_NO_PLACE - UPDATE_NO_PLACE] = "no such place in the flash's slots",
    [UPDATE_SLOT_IN_USE - UPDATE_NO_PLACE] = "the slot holds the image that the board starts",
    [UPDATE_NOT_ERASED - UPDATE_NO_PLACE] = "what should be written there has not been erased",
    [UPDATE_FLASH_FAILED - UPDATE_NO_PLACE] = "the flash failed",
    [UPDATE_OTHER_IMAGE - UPDATE_NO_PLACE] = "the image there is another one",
    [UPDATE_OLDER - UPDATE_NO_PLACE] = "the image is older than the one the board starts",
    [UPDATE_OTHERWISE - UPDATE_NO_PLACE] = "the board has been told otherwise, for good",
    [UPDATE_NO_RECORD - UPDATE_NO_PLACE] = "that is no whole provision record",
    [UPDATE_COUNTER_FULL - UPDATE_NO_PLACE] = "the board's security counter cannot be raised any more",
};

static const char *const verdict_texts[] = {
    [IMAGE_GOOD] = "",
    [IMAGE_ABSENT] = "there is no image",
    [IMAGE_TRUNCATED] = "the image is not whole",
    [IMAGE_MALFORMED] = "the image is malformed",
    [IMAGE_ALTERED] = "the image is not what its digest says",
    [IMAGE_UNSIGNED] = "the image is not signed, and this board takes none that is not",
    [IMAGE_FORGED] = "the image is not signed with this board's key",
    [IMAGE_FOREIGN] = "the image is for another board",
    [IMAGE_UNASKED] = "the board starts nothing: it has not been told whose images it takes, or cannot read it",
    [IMAGE_REVOKED] = "the image's security counter is below the board's",
};

static const char *text_of(uint32_t status)
{
    if (status >= UPDATE_IMAGE_REFUSED) {
        return verdict_texts[status - UPDATE_IMAGE_REFUSED];
    }
    return status >= UPDATE_NO_PLACE ? update_texts[status - UPDATE_NO_PLACE] : request_texts[status];
}

static uint32_t put_text(uint8_t *at, const char *text)
{
    uint32_t length = 0;
    for (; text[length] != 0; length++) {
        at[length] = (uint8_t)text[length];
    }
    return length;
}

static struct answer refuse(uint32_t status, uint32_t address)
{
    return (struct answer){status, address, 0};
}

static struct answer carry_out(uint8_t *packet, uint32_t size)
{
    const uint32_t index = (uint32_t)packet[1] - REQUEST_FIRST_KIND;
    if (packet[0] != PROTOCOL) {
        return refuse(REQUEST_OTHER_PROTOCOL, PROTOCOL);
    }
    if (packet[1] < REQUEST_FIRST_KIND || index >= REQUEST_KINDS) {
        return refuse(REQUEST_UNKNOWN, packet[1]);
    }
    const struct request_kind *kind = &request_kinds[index];
    const uint32_t data = size - kind->argument_bytes;
    if (size < kind->argument_bytes || (kind->takes_data ? data % 4 != 0 : data != 0)) {
        return refuse(REQUEST_BAD_ARGUMENTS, size);
    }
    return kind->handler(packet + HEADER_BYTES, size, packet + REPLY_HEADER_BYTES);
}

static void serve(uint8_t *packet, uint32_t size)
{
    if (size < HEADER_BYTES || (packet[1] & REPLY) != 0) {
        return; /* no request: an echo, perhaps */
    }
    struct answer answer = carry_out(packet, size - HEADER_BYTES);
    if (answer.status != REQUEST_DONE) {
        answer.size = put_text(packet + REPLY_HEADER_BYTES, text_of(answer.status));
    }
    const bool restarts = packet[1] == REQUEST_BOOT && answer.status == REQUEST_DONE;
    packet[0] = PROTOCOL;
    packet[1] |= REPLY;
    put16(packet + 4, hal_pe());
    put32(put32(packet + HEADER_BYTES, answer.status), answer.address);
    frame_send(packet, REPLY_HEADER_BYTES + answer.size);
    if (restarts) {
        pause_cycles(CYCLES_TO_SEND);
        flash_restart();
    }
}

_Noreturn void server_run(void)
{
    static struct frame frame;
    for (;;) {
        while (!line_readable()) {
            hal_wait();
        }
        if (frame_receive(&frame, line_read())) {
            serve(frame.buffer, frame.size);
            frame_clear(&frame);
        }
    }
}
