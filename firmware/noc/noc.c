/* SPDX-License-Identifier: Apache-2.0 */
#include "noc.h"

#include "board.h"
#include "core_events.h"
#include "rpc.h"

struct noc_registers {
    const struct noc_descriptor *volatile doorbell;
    const volatile uint32_t status;
    const volatile uint32_t completed;
    volatile uint32_t error; /* any write clears it */
    const volatile uint32_t pe;
    const volatile uint32_t pes;
    const volatile uint32_t chip;
    const volatile uint32_t reserved[57];
    volatile uint32_t flag[BOARD_NOC_FLAGS];
};

_Static_assert(offsetof(struct noc_registers, flag) == 0x100, "the flags' place");

enum { STATUS_BUSY = 1, STATUS_ERROR = 2 };
enum { ERROR_QUEUE_FULL = 1 };
enum { QUEUE = 8 };
enum { LOOKS = 16 }; /* reads of a flag before listening to the link: about the flight time of a short message */
enum { COPY_FLAG = BOARD_NOC_FLAGS - 1, CALL_FLAG = BOARD_NOC_FLAGS - 2 };

#define NOC ((struct noc_registers *)BOARD_NOC_BASE)

/* Counts consumed of each flag. Flags are never reset, because an increment may arrive at any moment. */
static uint32_t taken[BOARD_NOC_FLAGS];

static int32_t take_error(void)
{
    const int32_t error = (int32_t)NOC->error;
    NOC->error = 0;
    return error;
}

/* Retry a refused chain while the queue is full, the only error from which the engine recovers. */
__attribute__((noinline)) static int32_t send_again(const struct noc_descriptor *first)
{
    const uint32_t refused = STATUS_BUSY | STATUS_ERROR;
    while ((NOC->status & refused) == refused && NOC->error == ERROR_QUEUE_FULL) {
        NOC->error = 0;
        NOC->doorbell = first;
    }
    return (NOC->status & STATUS_ERROR) == 0 ? 0 : take_error();
}

/* Check for refusal after the doorbell, once per chain, instead of polling for room before every message. */
int32_t noc_send(const struct noc_descriptor *first)
{
    core_order_memory();
    NOC->doorbell = first;
    return (NOC->status & STATUS_ERROR) == 0 ? 0 : send_again(first);
}

__attribute__((always_inline)) static inline int32_t signal(const struct noc_descriptor *what)
{
    /* One descriptor more than the queue holds. Fields not set here stay 0: writing whole descriptors takes twice as
     * long. */
    static _Alignas(16) struct noc_descriptor signals[QUEUE + 1];
    static uint32_t place;
    struct noc_descriptor *const signal = &signals[place];
    place = place == QUEUE ? 0 : place + 1;
    signal->kind = NOC_COPY;
    signal->options = what->options;
    signal->tag = what->tag;
    signal->source_pe = NOC->pe;
    signal->source = signals;
    signal->destination_pe = what->destination_pe;
    signal->destination = what->destination;
    signal->rows = 1;
    signal->source_flag = what->source_flag;
    signal->destination_flag = what->destination_flag;
    return noc_send(signal);
}

int32_t noc_signal(uint32_t pe, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    return signal(&(struct noc_descriptor){
        .tag = tag, .destination_pe = pe, .source_flag = own_flag, .destination_flag = flag});
}

int32_t noc_signal_all(const struct noc_destination *to, uint32_t count, uint8_t flag, uint8_t own_flag, uint16_t tag)
{
    return signal(&(struct noc_descriptor){.options = NOC_MULTICAST,
                                           .tag = tag,
                                           .destination_pe = (uint32_t)(uintptr_t)to,
                                           .destination = count,
                                           .source_flag = own_flag,
                                           .destination_flag = flag});
}

static bool has_counted(uint32_t flag, uint32_t due)
{
    return (int32_t)(NOC->flag[flag] - due) >= 0;
}

static int32_t take_up_to(uint32_t flag, uint32_t due)
{
    __asm volatile("" ::: "memory");
    taken[flag] = due;
    return 0;
}

/* Listen to the link while waiting, so that the host can break off a wait without end. Listen only after LOOKS reads,
 * within which a message may arrive, and not right after an increment, since another may follow soon. */
__attribute__((noinline)) static int32_t listen_until(uint32_t flag, uint32_t due)
{
    for (uint32_t look = 0; look < LOOKS; look++) {
        if (has_counted(flag, due)) {
            return take_up_to(flag, due);
        }
    }
    uint32_t before = NOC->flag[flag];
    do {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        if (NOC->flag[flag] == before && rpc_break()) {
            return NOC_GIVEN_UP;
        }
        before = NOC->flag[flag];
        core_wait_for_event();
    } while (!has_counted(flag, due));
    return take_up_to(flag, due);
}

/* Not inline: keeps the path without sleep short. */
__attribute__((noinline)) static int32_t sleep_until(uint32_t flag, uint32_t due)
{
    if (NOC->pe == BOARD_NETWORK_PE) {
        return listen_until(flag, due);
    }
    do {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        core_wait_for_event();
    } while (!has_counted(flag, due));
    return take_up_to(flag, due);
}

int32_t noc_wait(uint32_t flag, uint32_t count)
{
    const uint32_t due = taken[flag] + count;
    return has_counted(flag, due) ? take_up_to(flag, due) : sleep_until(flag, due);
}

/* Wait for a copy of this PE's own. The increment is certain: no need to poll the link as in noc_wait(). */
__attribute__((always_inline)) static inline int32_t await_copy(void)
{
    const uint32_t due = taken[COPY_FLAG] + 1;
    while (!has_counted(COPY_FLAG, due)) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        core_wait_for_event();
    }
    return take_up_to(COPY_FLAG, due);
}

static int32_t copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes, uint32_t called)
{
    static _Alignas(16) struct noc_descriptor descriptor;
    const bool comes = to_pe == NOC->pe;
    descriptor = (struct noc_descriptor){
        .kind = NOC_COPY,
        .tag = NOC_NO_MESSAGE,
        .source_pe = from_pe,
        .source = (const void *)from,
        .destination_pe = to_pe,
        .destination = to,
        .row_bytes = (uint16_t)bytes,
        .rows = 1,
        .source_flag = comes ? NOC_NO_FLAG : COPY_FLAG,
        .destination_flag = comes ? COPY_FLAG : (uint8_t)called,
    };
    NOC->error = 0; /* An error of the last frame would be taken for the copy's while the copy is under way. */
    const int32_t error = noc_send(&descriptor);
    return error != 0 ? error : await_copy();
}

int32_t noc_copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes)
{
    return copy(from_pe, from, to_pe, to, bytes, NOC_NO_FLAG);
}

int32_t noc_fetch(uint32_t from, void *to, uint32_t bytes)
{
    static _Alignas(16) struct noc_descriptor descriptor;
    descriptor = (struct noc_descriptor){
        .kind = NOC_COPY,
        .tag = NOC_NO_MESSAGE,
        .source_pe = NOC_THIS_CHIP + NOC_DRAM,
        .source = (const void *)from,
        .destination_pe = NOC->pe,
        .destination = (uint32_t)(uintptr_t)to,
        .row_bytes = (uint16_t)bytes,
        .rows = 1,
        .source_flag = NOC_NO_FLAG,
        .destination_flag = COPY_FLAG,
    };
    return noc_send(&descriptor);
}

int32_t noc_fetched(void)
{
    return await_copy();
}

int32_t noc_call(uint32_t pe, uint32_t to, const void *from, uint32_t bytes)
{
    return copy(NOC->pe, (uint32_t)from, pe, to, bytes, CALL_FLAG);
}

uint32_t noc_calls(void)
{
    take_up_to(CALL_FLAG, NOC->flag[CALL_FLAG]);
    return taken[CALL_FLAG];
}
