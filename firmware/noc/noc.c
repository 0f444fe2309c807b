#include "noc.h"

#include "board.h"
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
enum { QUEUE = 8 };
enum { COPY_FLAG = BOARD_NOC_FLAGS - 1, CALL_FLAG = BOARD_NOC_FLAGS - 2 };

#define NOC ((struct noc_registers *)BOARD_NOC_BASE)

/* Descriptors started up to the end of each of the last chains: what `completed` must reach before the oldest's place
 * in the queue is free. */
static uint32_t ends[QUEUE];
static uint32_t descriptors_started;
static uint32_t chains_started;

/* What waits took from each flag. Flags are never reset: an increment may arrive at any moment. */
static uint32_t taken[BOARD_NOC_FLAGS];

/* An error empties the queue: what was in it will never be completed. */
static int32_t take_error(void)
{
    const int32_t error = (int32_t)NOC->error;
    NOC->error = 0;
    descriptors_started = NOC->completed;
    for (uint32_t i = 0; i < QUEUE; i++) {
        ends[i] = descriptors_started;
    }
    return error;
}

static uint32_t chain_length(const struct noc_descriptor *first)
{
    uint32_t length = 0;
    for (const struct noc_descriptor *each = first; each != 0; each = each->next) {
        length++;
    }
    return length;
}

/* `completed` counts modulo 2^32. */
static int queue_is_full(void)
{
    return (int32_t)(NOC->completed - ends[chains_started % QUEUE]) < 0;
}

/* 0 once the queue has room, or the error code of what emptied it. Inlined: every message pays for it. */
__attribute__((always_inline)) static inline int32_t await_room(void)
{
    while (queue_is_full()) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
    }
    return 0;
}

/* Start a chain of so many descriptors, for which the queue has room. Inlined for the same reason. */
__attribute__((always_inline)) static inline int32_t start(const struct noc_descriptor *first, uint32_t length)
{
    descriptors_started += length;
    ends[chains_started % QUEUE] = descriptors_started;
    chains_started++;
    __asm volatile("dsb" ::: "memory");
    NOC->doorbell = first;
    return (NOC->status & STATUS_ERROR) == 0 ? 0 : take_error();
}

int32_t noc_send(const struct noc_descriptor *first)
{
    const int32_t error = await_room();
    return error != 0 ? error : start(first, chain_length(first));
}

__attribute__((always_inline)) static inline int32_t signal(const struct noc_descriptor *what)
{
    /* As many as can be on their way. What is set nowhere stays 0: to write whole descriptors takes twice as long. */
    static _Alignas(16) struct noc_descriptor signals[QUEUE];
    const int32_t error = await_room();
    if (error != 0) {
        return error;
    }
    struct noc_descriptor *const signal = &signals[chains_started % QUEUE];
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
    return start(signal, 1);
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

static void take(uint32_t flag, uint32_t count)
{
    __asm volatile("" ::: "memory");
    taken[flag] += count;
}

/* The host must be able to end what would never end. Not inline: it would slow down the PEs that need none of it. */
__attribute__((noinline)) static int32_t wait_as_root(uint32_t flag, uint32_t count)
{
    while (NOC->flag[flag] - taken[flag] < count) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        if (rpc_break()) {
            return NOC_GIVEN_UP;
        }
        __asm volatile("wfe");
    }
    take(flag, count);
    return 0;
}

int32_t noc_wait(uint32_t flag, uint32_t count)
{
    while (NOC->flag[flag] - taken[flag] < count) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        if (NOC->pe == BOARD_NETWORK_PE) {
            return wait_as_root(flag, count);
        }
        __asm volatile("wfe");
    }
    take(flag, count);
    return 0;
}

/* Other than in noc_wait(), what is waited for comes for certain. */
static int32_t await_copy(void)
{
    while (NOC->flag[COPY_FLAG] == taken[COPY_FLAG]) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        __asm volatile("wfe");
    }
    take(COPY_FLAG, 1);
    return 0;
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
    const int32_t error = noc_send(&descriptor);
    return error != 0 ? error : await_copy();
}

int32_t noc_copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes)
{
    return copy(from_pe, from, to_pe, to, bytes, NOC_NO_FLAG);
}

int32_t noc_call(uint32_t pe, uint32_t to, const void *from, uint32_t bytes)
{
    return copy(NOC->pe, (uint32_t)from, pe, to, bytes, CALL_FLAG);
}

bool noc_called(void)
{
    const uint32_t calls = NOC->flag[CALL_FLAG] - taken[CALL_FLAG];
    take(CALL_FLAG, calls);
    return calls > 0;
}
