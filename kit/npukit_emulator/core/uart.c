/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The UART of the root PE, and its line to the host: hardware manual, section 5. */
#include <string.h>

#include "api.h"

enum { REGISTER_BYTES = 0x1000, BITS_PER_BYTE = 10, LOST = 4 };

static void on_sent(struct mesh *mesh, void *subject);
static void on_received(struct mesh *mesh, void *subject);

static void send_next(struct mesh *mesh, struct uart *uart)
{
    uart->on_line = uart->sending[uart->sending_first];
    uart->sending_first = (uart->sending_first + 1) % sizeof uart->sending;
    uart->sending_count--;
    uart->line_busy = true;
    events_post(mesh, mesh->now + uart->byte_cycles, uart->pe->number, on_sent, uart);
}

static void on_sent(struct mesh *mesh, void *subject)
{
    struct uart *uart = subject;
    uart->to_host = grow(uart->to_host, &uart->to_host_room, uart->to_host_count + 1, 1);
    uart->to_host[uart->to_host_count++] = uart->on_line;
    uart->line_busy = false;
    if (uart->sending_count > 0) {
        send_next(mesh, uart);
    } else {
        mesh->output = true;
    }
}

/* Size of the send buffer. A stock board has room for a single byte, besides the byte on the line. */
static uint32_t room_to_send(const struct uart *uart)
{
    return uart->pe->mesh->figures.stock ? 1 : sizeof uart->sending;
}

static void write_data(struct uart *uart, uint8_t byte)
{
    if (uart->sending_count == room_to_send(uart)) {
        return;
    }
    uart->sending[(uart->sending_first + uart->sending_count) % sizeof uart->sending] = byte;
    uart->sending_count++;
    if (!uart->line_busy) {
        send_next(uart->pe->mesh, uart);
    }
}

static uint8_t read_data(struct uart *uart)
{
    if (uart->received_count == 0) {
        return 0;
    }
    const uint8_t byte = uart->received[uart->received_first];
    uart->received_first = (uart->received_first + 1) % sizeof uart->received;
    uart->received_count--;
    races_host_speaks(uart->pe);
    return byte;
}

/* ---- registers, at offsets of the board file ---- */

static uint32_t read_status(struct uart *uart, uint32_t offset, bool readable)
{
    const struct figures *figures = &uart->pe->mesh->figures;
    const bool writable = (uart->sending_count < room_to_send(uart)) != (figures->uart_says_full != 0);
    const bool lost = uart->lost && !figures->stock;
    uart->lost = false;
    return (readable != (figures->uart_says_empty != 0) && offset == figures->uart_readable_at ? figures->uart_readable : 0U) |
           (writable && offset == figures->uart_writable_at ? figures->uart_writable : 0U) | (lost ? LOST : 0U);
}

/* Store a received byte in memory, for a UART with DMA. The firmware's next register read is early enough. Returns
 * whether a byte has been stored. */
static bool receive_into_memory(struct uart *uart)
{
    if (uart->armed && uart->received_count > 0) {
        const uint8_t byte = read_data(uart);
        mesh_write(uart->pe->mesh, uart->pe->number, uart->receive_to, &byte, 1);
        uart->armed = false;
        uart->ended = true;
    }
    return uart->ended;
}

static void write_to_dma(struct uart *uart, uint32_t offset, uint32_t value)
{
    const struct figures *figures = &uart->pe->mesh->figures;
    uint8_t byte = 0;
    if (offset == figures->uart_receive_to) {
        uart->receive_to = value;
    } else if (offset == figures->uart_send_from) {
        uart->send_from = value;
    } else if (offset == figures->uart_readable_at) {
        uart->ended = false;
    } else if (offset == figures->uart_receive) {
        uart->armed = true;
    } else if (offset == figures->uart_send && mesh_read(uart->pe->mesh, uart->pe->number, uart->send_from, &byte, 1)) {
        write_data(uart, byte);
    }
}

static bool has_dma(const struct uart *uart)
{
    return uart->pe->mesh->figures.uart_receive_to != NOWHERE_AT;
}

/* Whether a modelled register is at `offset`. */
bool uart_is_at(const struct uart *uart, uint32_t offset)
{
    const struct figures *figures = &uart->pe->mesh->figures;
    return offset == figures->uart_receive || offset == figures->uart_send || offset == figures->uart_readable_at ||
           offset == figures->uart_writable_at;
}

uint32_t uart_read(struct uart *uart, uint32_t offset)
{
    if (has_dma(uart)) {
        return read_status(uart, offset, receive_into_memory(uart));
    }
    return offset == uart->pe->mesh->figures.uart_receive ? read_data(uart) : read_status(uart, offset, uart->received_count > 0);
}

void uart_write(struct uart *uart, uint32_t offset, uint32_t value)
{
    if (has_dma(uart)) {
        write_to_dma(uart, offset, value);
    } else if (offset == uart->pe->mesh->figures.uart_send) {
        write_data(uart, (uint8_t)value);
    }
}

static uint32_t read_uart(struct pe *pe, void *device, uint32_t offset)
{
    (void)pe;
    return uart_read(device, offset);
}

static void write_uart(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)pe;
    uart_write(device, offset, value);
}

/* ---- from the host ---- */

static void arrive_next(struct mesh *mesh, uint64_t from)
{
    mesh->uart.arriving = true;
    events_post(mesh, from + mesh->uart.byte_cycles, mesh->uart.pe->number, on_received, &mesh->uart);
}

static void on_received(struct mesh *mesh, void *subject)
{
    struct uart *uart = subject;
    const struct figures *figures = &mesh->figures;
    if (figures->stock && uart->received_count == figures->receive_bytes) {
        arrive_next(mesh, mesh->now); /* as in QEMU, a byte for a stock board waits for room */
        return;
    }
    const uint8_t byte = uart->to_board[uart->to_board_first++];
    if (uart->received_count == uart->pe->mesh->figures.receive_bytes) {
        uart->lost = true;
    } else {
        uart->received[(uart->received_first + uart->received_count) % sizeof uart->received] = byte;
        uart->received_count++;
        pe_set_event(uart->pe);
    }
    uart->arriving = false;
    if (uart->to_board_first < uart->to_board_count) {
        arrive_next(mesh, mesh->now);
    } else {
        uart->to_board_first = uart->to_board_count = 0;
    }
}

/* Put bytes on the line to the board. If the root PE is ahead of the others, the bytes arrive after the root PE's
 * present cycle. */
void uart_receive(struct mesh *mesh, const uint8_t *data, size_t count)
{
    struct uart *uart = &mesh->uart;
    if (uart->pe == NULL || count == 0) {
        return;
    }
    uart->to_board = grow(uart->to_board, &uart->to_board_room, uart->to_board_count + count, 1);
    memcpy(uart->to_board + uart->to_board_count, data, count);
    uart->to_board_count += count;
    if (!uart->arriving) {
        const bool ahead = uart->pe->state == PE_RUNNING && uart->pe->cycles > mesh->now;
        arrive_next(mesh, ahead ? uart->pe->cycles : mesh->now);
    }
}

size_t uart_take(struct mesh *mesh, uint8_t *data, size_t room)
{
    struct uart *uart = &mesh->uart;
    const size_t count = uart->to_host_count < room ? uart->to_host_count : room;
    memcpy(data, uart->to_host, count);
    memmove(uart->to_host, uart->to_host + count, uart->to_host_count - count);
    uart->to_host_count -= count;
    mesh->output = false;
    return count;
}

const char *uart_attach(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    struct uart *uart = &pe->mesh->uart;
    uart->pe = pe;
    uart->byte_cycles = BITS_PER_BYTE * figures->clock_hz / figures->baud;
    const struct bus_port port = {NULL, uart, read_uart, write_uart, NULL, false, true, 0};
    return figures->stock ? NULL : bus_attach(pe, figures->uart_base, REGISTER_BYTES, port);
}
