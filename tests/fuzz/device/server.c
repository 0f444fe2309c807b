/* The RPC server of the firmware under libFuzzer, with a net that does next to nothing. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "hal.h"
#include "net.h"
#include "rpc.h"
#include "rpc_answer.h"

enum { MEMORY = 0x20000000, MEMORY_BYTES = 0x2000, WRITABLE_AT = 0x1000, LAYERS = 3, EVENTS = 4, ELSEWHERE = 0x4000 };
enum { PE = 5, NEIGHBOUR = 6, ROW = 10, ROWS = 3, STRIDE = 16 };

int LLVMFuzzerInitialize(int *count, char ***arguments);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t arena[ROWS * STRIDE];
static const struct net_tensor tensor = {"tensor", arena, ROW, ROWS, STRIDE, false, 0, 0, 0};
static const char *const layer_names[LAYERS] = {"one", "", "three"};
static const struct net_chip chips[] = {{0, 0}};
static const struct net_pe pes[] = {{PE, 0}, {NEIGHBOUR, ELSEWHERE}};
const uint16_t *const net_layer_numbers = 0;
const struct net_layer net_layers[LAYERS] = {{arena, ROW, ROWS, STRIDE, 1, 0}, {arena, 0, 0, 0, 0, 0}, {arena, 1, 1, 1, 1, 1}};
const uint32_t net_sign = 0x51617;
static const uint32_t layer_count = LAYERS;
const uint32_t *const net_layer_count = &layer_count;
static struct net_control control;
static struct net_record records[LAYERS];
struct net_control *const net_control = &control;
struct net_record *const net_records = records;
static struct {
    struct net_events head;
    struct net_event ring[EVENTS];
} events;
struct net_events *const net_events = &events.head;
const uint32_t net_event_capacity = EVENTS;
rpc_handler *const rpc_events = rpc_read_events;
rpc_handler *const rpc_states = 0;
const struct net_description net_description = {
    .model = "model", .board = "board", .input_count = 1, .output_count = 1, .frame_count = 1, .pe_count = 2,
    .chip_count = 1, .link_bytes = 256, .chips = chips,
    .inputs = &tensor, .outputs = &tensor, .layer_names = layer_names, .pes = pes,
};
const struct rpc_region rpc_regions[] = {
    {(uint8_t *)(uintptr_t)MEMORY, MEMORY_BYTES, false},
    {(uint8_t *)(uintptr_t)(MEMORY + WRITABLE_AT), MEMORY_BYTES - WRITABLE_AT, true},
};
const uint32_t rpc_region_count = 2;

const struct rpc_stretch rpc_loaded[RPC_LOADED] = {{(const uint8_t *)rpc_regions, (const uint8_t *)rpc_regions}};

static struct {
    struct net_control control;
    struct net_record records[2];
    struct net_events events;
    struct net_event ring[4];
} neighbour;

static uint8_t *neighbours_byte(uint32_t pe, uint32_t address, uint32_t bytes)
{
    const uint32_t at = address - ELSEWHERE;
    const bool there = pe == NEIGHBOUR && at <= sizeof neighbour && bytes <= sizeof neighbour - at;
    return there ? (uint8_t *)&neighbour + at : 0;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    const uint8_t *from = neighbours_byte(pe, address, bytes);
    if (from != 0) {
        memcpy(to, from, bytes);
    }
    return from != 0;
}

bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes)
{
    uint8_t *to = neighbours_byte(pe, address, bytes);
    if (to != 0) {
        memcpy(to, from, bytes);
    }
    return to != 0;
}

uint32_t hal_pe(void)
{
    return PE;
}

void hal_count(struct hal_counters *counters)
{
    *counters = (struct hal_counters){1, 2, 3};
}

uint64_t hal_cycles(void)
{
    return 1;
}

bool hal_is_on_trial(void)
{
    return false;
}

void hal_confirm(void) {}

bool hal_may_be_read(uint32_t address, uint32_t bytes)
{
    (void)address, (void)bytes;
    return false;
}

_Noreturn void hal_reset(void)
{
    longjmp(all_read, 1);
}

/* The input's first byte asks for trouble. A run of any length ends with what there is to read. */
int32_t net_run(void)
{
    net_event(0);
    net_event(NET_FRAME_END);
    if (rpc_run_is_under_way() && (rpc_break() || !hal_link_readable())) {
        longjmp(all_read, 1);
    }
    for (uint32_t i = 0; i < LAYERS && net_observed(); i++) {
        net_begin_layer();
        net_end_layer(i);
    }
    if (arena[0] == 0xFA) {
        rpc_report_fault(1, 2, 3);
        hal_wait();
    }
    return arena[0] == 0xE0 ? -7 : 0;
}

int LLVMFuzzerInitialize(int *count, char ***arguments)
{
    (void)count, (void)arguments;
    void *memory = mmap((void *)(uintptr_t)MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) {
        abort();
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    neighbour.control = (struct net_control){.sign = net_sign, .layer_count = 2, .events = ELSEWHERE + 96};
    neighbour.events = (struct net_events){.written = 6, .capacity = 4};
    fuzz_begin(data, size);
    if (setjmp(all_read) == 0) {
        rpc_serve();
    }
    return 0;
}
