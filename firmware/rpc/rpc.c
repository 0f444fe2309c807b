/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc.h"

#include "bytes.h"
#include "hal.h"
#include "net.h"
#include "rpc_answer.h"

enum {
    PROTOCOL = 1,
    REPLY = 0x80, /* bit of the kind in every packet to the host */
    LOG = 0xFE,
    FAULT = 0xFF,
    THE_LINKED_PE = 0xFFFF,
    MOST_WINDOW = 8,
    SHORT_REQUEST_BYTES = 28, /* of the frame of any request without data */
    LONGEST_NAME = 96,
    LONGEST_LINE = 120,
    FAULT_BYTES = 8,
};

/* Polls without a byte before the server goes on: at least 1 ms on any board, ten bytes at 115200 baud. */
enum { POLLS_OF_PATIENCE = 20000 };

enum { DEVICE_BYTES = 28, COUNTER_BYTES = 24 };
_Static_assert(DEVICE_BYTES + 2 * (1 + LONGEST_NAME) <= RPC_PAYLOAD_BYTES, "the handshake fits a packet");

struct request_kind {
    rpc_handler *handler;
    uint8_t argument_bytes;
    bool takes_data; /* any number of bytes after the arguments */
    bool for_any_pe; /* this PE carries it out for any PE */
};

static rpc_handler hello, read_counters, reset;

/* Indexed by the kind of request. */
static const struct request_kind request_kinds[] = {
    {0, 0, false, false},
    {hello, 0, false, false},
    {rpc_describe, 4, false, false},
    {rpc_write_input, 8, true, false},
    {rpc_read_output, 8, false, false},
    {rpc_run, 8, false, false},
    {rpc_read_layers, 4, false, true},
    {rpc_read_memory, 8, false, true},
    {rpc_write_memory, 4, true, true},
    {read_counters, 0, false, false},
    {rpc_read_pes, 4, false, false},
    {rpc_start, 12, false, false},
    {rpc_stop, 4, false, false},
    {rpc_read_run, 4, false, false},
    {reset, 0, false, false},
    {0, 4, false, true}, /* rpc_events */
    {rpc_digest, 8, false, true},
    {0, 0, false, false}, /* rpc_states */
    {rpc_stop_behind, 4, false, true},
};

enum { READ_EVENTS = 15, RESET_STATES = 17, REQUEST_KINDS = sizeof request_kinds / sizeof request_kinds[0] };

static const char *const status_texts[RPC_STATUSES] = {
    [RPC_OK] = "",
    [RPC_OTHER_PROTOCOL] = "the device speaks another protocol version",
    [RPC_NO_SESSION] = "no handshake: the device restarted, or another host took over",
    [RPC_OTHER_PE] = "no way to that PE, or not for this request",
    [RPC_UNKNOWN_REQUEST] = "unknown request",
    [RPC_BAD_ARGUMENTS] = "arguments of the wrong size",
    [RPC_NO_SUCH_TENSOR] = "no such tensor",
    [RPC_OUT_OF_RANGE] = "beyond the end of the tensor",
    [RPC_NOT_READABLE] = "memory the host may not read",
    [RPC_NOT_WRITABLE] = "memory the host may not write",
    [RPC_NO_OUTPUT] = "no successful run since an input was written",
    [RPC_NOT_OBSERVED] = "no observed run that succeeded",
    [RPC_FAULT] = "the PE has stopped",
    [RPC_NOT_RUNNING] = "a PE of the network does not run it",
    [RPC_OUT_OF_STEP] = "the PEs are out of step since a run failed: reset the board",
    [RPC_RUNNING] = "a run is under way",
    [RPC_NO_SUCH_RUN] = "no such run, or not at that frame",
    [RPC_NOT_TRACED] = "the build writes no events",
};

static bool restarts; /* restart the board once the reply is sent */
static uint32_t session; /* number of the open session; 0: none */

static uint8_t *put_name(uint8_t *at, const char *name)
{
    uint8_t length = 0;
    while (length < LONGEST_NAME && name[length] != 0) {
        at[1 + length] = (uint8_t)name[length];
        length++;
    }
    at[0] = length;
    return at + 1 + length;
}

/* Number of requests that may be outstanding. The device reads nothing while it sends a long reply, so the next
 * requests must fit the link's buffer. Requests with data have short replies. */
static uint32_t window(void)
{
    const uint32_t fit = net_description.link_bytes / SHORT_REQUEST_BYTES;
    return fit < 1 ? 1 : fit < MOST_WINDOW ? fit : MOST_WINDOW;
}

static struct rpc_answer hello(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)arguments, (void)size;
    uint8_t *at = put16(payload, FRAME_PACKET_BYTES);
    at = put16(at, window());
    const uint32_t frames = (uint32_t)net_description.frame_count * net_description.chip_count;
    at = put16(at, net_description.input_count * frames);
    at = put16(at, net_description.output_count * frames);
    at = put16(at, *net_layer_count);
    at = put16(at, (uint32_t)net_description.pe_count * net_description.chip_count);
    for (uint32_t i = 0; i < sizeof net_description.build_id; i++) {
        *at++ = net_description.build_id[i];
    }
    at = put_name(at, net_description.board);
    at = put_name(at, net_description.model);
    return rpc_done((uint32_t)(at - payload));
}

static struct rpc_answer read_counters(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)arguments, (void)size;
    struct hal_counters now;
    hal_count(&now);
    put64(put64(put64(payload, now.cycles), now.instructions), now.asleep);
    return rpc_done(COUNTER_BYTES);
}

/* Restart the board. Only the PE with the link can. */
static struct rpc_answer reset(uint32_t pe, const uint8_t *arguments, uint32_t size, uint8_t *payload)
{
    (void)pe, (void)arguments, (void)size, (void)payload;
    restarts = hal_link_present();
    return restarts ? rpc_done(0) : rpc_refuse(RPC_OTHER_PE, hal_pe());
}

static uint32_t put_text(uint8_t *at, const char *text)
{
    uint32_t length = 0;
    for (; text[length] != 0; length++) {
        at[length] = (uint8_t)text[length];
    }
    return length;
}

static void open_session(uint32_t of_host)
{
    if (session != of_host) {
        session = of_host;
        rpc_forget_run();
    }
}

static uint32_t pe_of(const uint8_t *packet)
{
    uint32_t pe = get16(packet + 4);
    return pe == THE_LINKED_PE ? hal_pe() : pe;
}

/* Refusal of the request in the frame, or RPC_OK. */
static struct rpc_answer objection(const uint8_t *packet, uint32_t argument_bytes)
{
    uint32_t kind = packet[1], of_session = get16(packet + 6);
    if (packet[0] != PROTOCOL) {
        return rpc_refuse(RPC_OTHER_PROTOCOL, PROTOCOL);
    }
    if (kind == 0 || kind >= REQUEST_KINDS) {
        return rpc_refuse(RPC_UNKNOWN_REQUEST, kind);
    }
    const struct request_kind *known = &request_kinds[kind];
    if (pe_of(packet) != hal_pe() && !known->for_any_pe) {
        return rpc_refuse(RPC_OTHER_PE, hal_pe());
    }
    if (argument_bytes < known->argument_bytes || (argument_bytes > known->argument_bytes && !known->takes_data)) {
        return rpc_refuse(RPC_BAD_ARGUMENTS, argument_bytes);
    }
    if (kind == RPC_HELLO) {
        open_session(of_session);
    }
    if (of_session == 0 || of_session != session) {
        return rpc_refuse(RPC_NO_SESSION, 0);
    }
    return kind == READ_EVENTS && rpc_events == 0 ? rpc_refuse(RPC_NOT_TRACED, 0) : rpc_done(0);
}

/* Confirm firmware on trial once all PEs run and the host sends a request after HELLO. */
static void end_trial(void)
{
    if (hal_is_on_trial() && rpc_all_run()) {
        hal_confirm();
    }
}

static rpc_handler *handler_of(uint32_t kind)
{
    switch (kind) {
    case READ_EVENTS:
        return rpc_events;
    case RESET_STATES:
        return rpc_states;
    default:
        return request_kinds[kind].handler;
    }
}

static struct rpc_answer carry_out(uint8_t *packet, uint32_t argument_bytes)
{
    struct rpc_answer answer = objection(packet, argument_bytes);
    if (answer.status == RPC_OK && packet[1] != RPC_HELLO) {
        end_trial();
    }
    rpc_handler *const handler = answer.status == RPC_OK ? handler_of(packet[1]) : 0;
    if (handler != 0) { /* else refused, or no states to reset */
        answer = handler(pe_of(packet), packet + RPC_HEADER_BYTES, argument_bytes, packet + RPC_REPLY_HEADER_BYTES);
    }
    if (answer.status != RPC_OK) {
        answer.size = put_text(packet + RPC_REPLY_HEADER_BYTES, status_texts[answer.status]);
    }
    return answer;
}

/* Turn the request's header into the reply's. Its other fields stay, by which the host matches the reply to the
 * request. */
static void put_reply_header(uint8_t *packet, const struct rpc_answer *answer)
{
    packet[0] = PROTOCOL;
    packet[1] |= REPLY;
    put16(packet + 4, hal_pe());
    put32(put32(packet + RPC_HEADER_BYTES, answer->status), answer->address);
}

uint32_t rpc_answer(uint8_t *packet, uint32_t size)
{
    if (size < RPC_HEADER_BYTES || (packet[1] & REPLY) != 0) {
        return 0; /* no request: an echo, perhaps */
    }
    struct rpc_answer answer = carry_out(packet, size - RPC_HEADER_BYTES);
    put_reply_header(packet, &answer);
    return RPC_REPLY_HEADER_BYTES + answer.size;
}

void rpc_send(uint8_t *packet, uint32_t size)
{
    if (size != 0) {
        frame_send(packet, size);
    }
    if (restarts) {
        hal_reset();
    }
}

static void serve_news(void)
{
    struct frame *const frame = rpc_next_frame(0);
    if (frame != 0) {
        rpc_send(frame->buffer, rpc_answer(frame->buffer, frame->size));
        rpc_frame_done();
    }
}

/* Answer requests that have arrived during a frame. A UART smaller than a request has lost a part of it, and the host
 * repeats the request: wait a little after each byte for the next. */
static void serve_between_frames(void)
{
    const uint32_t patience = net_description.link_bytes < SHORT_REQUEST_BYTES ? POLLS_OF_PATIENCE : 1;
    uint32_t quiet = rpc_link_has_news() ? 0 : patience;
    while (quiet < patience) {
        quiet = rpc_link_has_news() ? 0 : quiet + 1;
        serve_news();
    }
}

_Noreturn void rpc_serve(void)
{
    net_start();
    for (;;) {
        if (rpc_run_frame()) {
            serve_between_frames();
        } else if (rpc_link_has_news()) {
            serve_news();
        } else {
            hal_wait();
        }
    }
}

/* Send an unrequested packet. `packet` holds the payload in place and room for the CRC; all other bytes are 0. */
static void tell(uint8_t *packet, uint32_t kind, struct rpc_answer said)
{
    packet[1] = (uint8_t)kind;
    put_reply_header(packet, &said);
    put16(packet + 6, session);
    frame_send(packet, RPC_REPLY_HEADER_BYTES + said.size);
}

void rpc_log(const char *line)
{
    uint8_t packet[RPC_REPLY_HEADER_BYTES + LONGEST_LINE + FRAME_CRC_BYTES] = {0};
    uint32_t size = 0;
    while (size < LONGEST_LINE && line[size] != 0) {
        packet[RPC_REPLY_HEADER_BYTES + size] = (uint8_t)line[size];
        size++;
    }
    if (hal_link_present()) {
        tell(packet, LOG, rpc_done(size));
    }
}

void rpc_report_fault(uint32_t code, uint32_t pc, uint32_t address)
{
    net_control->fault_status = code;
    net_control->fault_pc = pc;
    net_control->fault_address = address;
    if (!hal_link_present()) {
        return;
    }
    /* Separate packet, since the fault may have struck while the link's frame was in use. */
    uint8_t packet[RPC_REPLY_HEADER_BYTES + FAULT_BYTES + FRAME_CRC_BYTES] = {0};
    put32(put32(packet + RPC_REPLY_HEADER_BYTES, code), address);
    tell(packet, FAULT, (struct rpc_answer){.status = RPC_FAULT, .address = pc, .size = FAULT_BYTES});
}
