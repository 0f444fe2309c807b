/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The UART of the root PE, and the wire to the host: hardware manual, section 5. */
#include <string.h>

#include "mesh.h"

enum { REGISTER_BYTES = 0x1000, BITS_PER_BYTE = 10, LOST = 4 };

/* Where a UART's registers have what matters: the data, whether there is some, whether there is room for more. The others
 * are of no effect. Whose they are: `console` of the board's figures. */
static const struct uart_registers {
    uint32_t receive, send, readable_at, readable, writable_at, writable;
    bool says_full; /* and not whether there is room */
    bool bytes;     /* registers of a byte */
} all_registers[] = {
    {0, 0, 4, 1, 4, 2, false, false},                 /* pe-mesh */
    {0, 0, 4, 2, 4, 1, true, false},                  /* Arm's CMSDK, on its MPS2+ */
    {0, 0, 4, 2, 4, 1, true, false},                  /* on its MPS3 */
    {0x518, 0x51C, 0x108, 1, 0x11C, 1, false, false}, /* nRF51 */
    {0, 0, 5, 1, 5, 0x20, false, true},               /* 16550 */
    {4, 4, 0, 0x20, 0, 0x80, false, false},           /* STM32F4 */
};

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

/* Besides the byte on the line, a stock board's holds one. */
static uint32_t room_to_send(const struct uart *uart)
{
    return uart->pe->mesh->figures.console == 0 ? sizeof uart->sending : 1;
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
    return byte;
}

static const struct uart_registers *registers_of(const struct uart *uart)
{
    return &all_registers[uart->pe->mesh->figures.console];
}

static uint32_t read_status(struct uart *uart, uint32_t offset)
{
    const struct uart_registers *registers = registers_of(uart);
    const bool readable = uart->received_count > 0;
    const bool writable = (uart->sending_count < room_to_send(uart)) != registers->says_full;
    const bool lost = uart->lost && registers == &all_registers[0];
    uart->lost = false;
    return (readable && offset == registers->readable_at ? registers->readable : 0U) |
           (writable && offset == registers->writable_at ? registers->writable : 0U) | (lost ? LOST : 0U);
}

static uint32_t read_uart(struct pe *pe, void *device, uint32_t offset)
{
    struct uart *uart = device;
    (void)pe;
    return offset == registers_of(uart)->receive ? read_data(uart) : read_status(uart, offset);
}

static void write_uart(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)pe;
    if (offset == registers_of(device)->send) {
        write_data(device, (uint8_t)value);
    }
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
    if (figures->console != 0 && uart->received_count == figures->receive_bytes) {
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

/* Put bytes on the wire to the board. The root PE may be ahead of the others: they come in its future. */
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
    const struct bus_port port = {NULL, uart, read_uart, write_uart, NULL, registers_of(uart)->bytes, true, 0};
    return bus_attach(pe, figures->uart_base, REGISTER_BYTES, port);
}
