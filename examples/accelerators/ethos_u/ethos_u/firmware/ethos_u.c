/* The driver. Registers and their bits: Arm's technical reference manual of the Ethos-U. */
#include "ethos_u.h"

#include <string.h>

#include "accelerator.h"
#include "board.h"

struct ethos_u_registers {
    const volatile uint32_t id;
    const volatile uint32_t status;
    volatile uint32_t command;
    volatile uint32_t reset;
    volatile uint32_t stream[2]; /* 64 bits, like all addresses */
    const volatile uint32_t stream_read;
    volatile uint32_t stream_config;
    volatile uint32_t stream_bytes;
    uint32_t reserved0[6];
    volatile uint32_t region_config;
    uint32_t reserved1[16];
    volatile uint32_t region[8][2];
};

_Static_assert(sizeof(struct ethos_u_registers) == 0x80 + 64, "up to the last region");

enum { RUNNING = 1, BUS_ERROR = 1 << 2, IN_RESET = 1 << 3, PARSE_ERROR = 1 << 4 };
enum { RUN = 1, CLEAR_INTERRUPT = 2 };
enum { WEIGHTS, ARENA }; /* Vela's regions */
enum { MAGIC = 0x554F4854, BAD_BLOB = -1 };

#define ETHOS_U ((struct ethos_u_registers *)BOARD_ETHOS_U_BASE)

/* Offset and size of a tensor in the arena. */
struct end {
    uint32_t offset, bytes;
};

struct header {
    uint32_t magic, stream, stream_bytes, weights, inputs, outputs;
    struct end ends[5]; /* the inputs, then the output */
};

static struct {
    const uint8_t *from;
    void *output;
    uint32_t bytes;
} result;

static void put(volatile uint32_t place[2], const void *address)
{
    place[0] = (uint32_t)(uintptr_t)address;
    place[1] = 0;
}

/* Most operands lie in the arena already. */
static void copy(void *to, const void *from, uint32_t bytes)
{
    if (to != from) {
        memcpy(to, from, bytes);
    }
}

static void reset(void)
{
    ETHOS_U->reset = 0; /* not secure, user: as required by the streams; any value written resets */
    while ((ETHOS_U->status & IN_RESET) != 0) {
    }
}

int32_t ethos_u_start(const uint8_t *blob, void *arena, void *output, void *first, void *second, void *third, void *fourth)
{
    const struct header *header = (const void *)blob;
    const void *const inputs[] = {first, second, third, fourth};
    if (header->magic != MAGIC || header->inputs > 4 || header->outputs != 1) {
        return BAD_BLOB;
    }
    for (uint32_t i = 0; i < header->inputs; i++) {
        copy((uint8_t *)arena + header->ends[i].offset, inputs[i], header->ends[i].bytes);
    }
    const struct end end = header->ends[header->inputs];
    result.from = (const uint8_t *)arena + end.offset;
    result.output = output;
    result.bytes = end.bytes;
    reset();
    ETHOS_U->region_config = BOARD_ETHOS_U_REGION_CONFIG;
    put(ETHOS_U->region[WEIGHTS], blob + header->weights);
    put(ETHOS_U->region[ARENA], arena);
    put(ETHOS_U->stream, blob + header->stream);
    ETHOS_U->stream_bytes = header->stream_bytes;
    accelerator_before();
    ETHOS_U->command = RUN;
    return 0;
}

int32_t ethos_u_wait(void)
{
    uint32_t status;
    while (((status = ETHOS_U->status) & RUNNING) != 0) {
        accelerator_wait();
    }
    accelerator_after();
    ETHOS_U->command = CLEAR_INTERRUPT;
    copy(result.output, result.from, result.bytes);
    result.bytes = 0; /* a further wait copies nothing */
    return (int32_t)(status & (BUS_ERROR | PARSE_ERROR));
}
