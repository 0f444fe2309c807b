/* A device for the link's tests: the RPC server over a HAL of pipes and a small net.
 * stdin and stdout are the link. Each time the server sleeps with nothing to read, stderr gets the number of bytes it has read so far. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal.h"
#include "net.h"
#include "rpc.h"

enum { ROW = 300, ROWS = 3, STRIDE = 320, SUMS = 7, LAYERS = 40, PE = 5, OBSERVER_CYCLES = 500 };
enum { MEMORY = 0x20000000, MEMORY_BYTES = 0x2000, WRITABLE_AT = 0x1000 };

/* --- the HAL --- */

static uint32_t bytes_read;
static uint8_t receiving[4096], sending[4096];
static ssize_t received_at, received;
static size_t to_send;
static struct hal_counters counters;
static bool being_observed;

void hal_init(void) {}

void hal_count(struct hal_counters *now)
{
    *now = counters;
    if (being_observed) {
        counters.cycles += OBSERVER_CYCLES; /* passes between the observer's first look and its last */
        being_observed = false;
    }
}

uint32_t hal_pe(void)
{
    return PE;
}

bool hal_link_present(void)
{
    return true;
}

static void fill(int patience)
{
    struct pollfd input = {.fd = 0, .events = POLLIN};
    if (received_at < received || poll(&input, 1, patience) <= 0) {
        return;
    }
    received_at = 0;
    received = read(0, receiving, sizeof receiving);
    if (received <= 0) {
        exit(0);
    }
}

static void flush(void)
{
    if (write(1, sending, to_send) != (ssize_t)to_send) {
        exit(1);
    }
    to_send = 0;
}

bool hal_link_readable(void)
{
    fill(0);
    return received_at < received;
}

uint8_t hal_link_read(void)
{
    bytes_read++;
    return receiving[received_at++];
}

void hal_link_write(uint8_t byte)
{
    sending[to_send++] = byte;
    if (to_send == sizeof sending) {
        flush();
    }
}

void hal_wait(void)
{
    flush();
    if (write(2, &bytes_read, sizeof bytes_read) != (ssize_t)sizeof bytes_read) {
        exit(1);
    }
    fill(-1);
}

/* --- the net: out[i] = in[i] + offset row by row, and a few sums, in 40 layers; inputs and outputs share memory --- */

static uint8_t arena[ROWS * STRIDE];
static uint8_t offset_input[2];
static uint8_t sums[SUMS];
static uint8_t layer_bytes[LAYERS];

static const struct net_tensor inputs[] = {
    {"image", arena, ROW, ROWS, STRIDE},
    {"offset", offset_input, 2, 1, 2},
};
static const struct net_tensor outputs[] = {
    {"shifted", arena, ROW, ROWS, STRIDE},
    {"sums", sums, SUMS, 1, SUMS},
};
static char layer_names[LAYERS][16];
static struct net_layer layers[LAYERS];
const struct net_description net_description = {
    .model = "shifter",
    .board = "pipes",
    .build_id = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
    .input_count = 2,
    .output_count = 2,
    .layer_count = LAYERS,
    .inputs = inputs,
    .outputs = outputs,
    .layers = layers,
};

static void take_time(uint64_t cycles)
{
    counters.cycles += cycles;
    counters.instructions += cycles / 2;
    counters.asleep += cycles / 4;
}

static void shift(void)
{
    for (uint32_t y = 0; y < ROWS; y++) {
        for (uint32_t x = 0; x < ROW; x++) {
            arena[y * STRIDE + x] = (uint8_t)(arena[y * STRIDE + x] + offset_input[0]);
        }
    }
}

/* The offset's second byte asks for trouble: 1 a failing run, 2 a fault. */
int32_t net_run(net_observer *observer)
{
    if (offset_input[1] == 2) {
        rpc_report_fault(0x8200, 0x1234, 0xDEADBEEF);
        flush();
        exit(0);
    }
    shift();
    take_time(1000);
    for (uint32_t i = 0; i < LAYERS; i++) {
        layer_bytes[i] = (uint8_t)(arena[0] + i);
        take_time(i == LAYERS - 1 ? UINT64_C(1) << 33 : 8 * i);
        if (observer != 0) {
            being_observed = true;
            observer(i);
        }
    }
    for (uint32_t i = 0; i < SUMS; i++) {
        sums[i] = (uint8_t)(arena[0] + i);
    }
    return offset_input[1] == 1 ? -7 : 0;
}

/* --- what the generated project provides --- */

struct rpc_layer_record rpc_layer_records[LAYERS];
const struct rpc_region rpc_regions[] = {
    {(uint8_t *)(uintptr_t)MEMORY, MEMORY_BYTES, false},
    {(uint8_t *)(uintptr_t)(MEMORY + WRITABLE_AT), MEMORY_BYTES - WRITABLE_AT, true},
};
const uint32_t rpc_region_count = 2;

static void name_layers(void)
{
    for (uint32_t i = 0; i < LAYERS; i++) {
        snprintf(layer_names[i], sizeof layer_names[i], "layer %u", (unsigned)i);
        layers[i] = (struct net_layer){layer_names[i], {layer_names[i], &layer_bytes[i], 1, 1, 1}};
    }
    layers[0].output = outputs[0];
}

int main(void)
{
    void *memory = mmap((void *)(uintptr_t)MEMORY, MEMORY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) {
        return 1;
    }
    name_layers();
    rpc_serve();
}
