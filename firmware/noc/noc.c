#include "noc.h"

#include "board.h"

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

#define NOC ((struct noc_registers *)BOARD_NOC_BASE)

/* Descriptors started up to the end of each of the last chains: what `completed` must reach before the oldest's place
 * in the queue is free. */
static uint32_t ends[QUEUE];
static uint32_t descriptors_started;
static uint32_t chains_started;

/* What waits took from each flag. Flags are never reset: an increment may arrive at any moment. */
static uint32_t taken[BOARD_NOC_FLAGS];

static int32_t take_error(void)
{
    const int32_t error = (int32_t)NOC->error;
    NOC->error = 0;
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

int32_t noc_send(const struct noc_descriptor *first)
{
    while (queue_is_full()) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
    }
    descriptors_started += chain_length(first);
    ends[chains_started % QUEUE] = descriptors_started;
    chains_started++;
    __asm volatile("dsb" ::: "memory");
    NOC->doorbell = first;
    return (NOC->status & STATUS_ERROR) == 0 ? 0 : take_error();
}

int32_t noc_wait(uint32_t flag, uint32_t count)
{
    while (NOC->flag[flag] - taken[flag] < count) {
        if ((NOC->status & STATUS_ERROR) != 0) {
            return take_error();
        }
        __asm volatile("wfe");
    }
    __asm volatile("" ::: "memory");
    taken[flag] += count;
    return 0;
}
