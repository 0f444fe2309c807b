/* A device for the link's tests: the RPC server over the link of pipes.c, with the net of shifter.c. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal.h"
#include "pipes.h"
#include "rpc.h"
#include "shifter.h"

static struct hal_counters counters;

/* The neighbour's memory. */
static struct neighbour {
    struct net_control control;
    struct net_record records[2];
    struct net_events events;
    struct net_event ring[4];
} neighbour = {
    .control = {.sign = SIGN, .layer_count = 2, .frames = 3, .counters = {700, 600, 500}, .status = 0, .events = CONTROL_AT + 96},
    .records = {{1, 4, 3, 2}, {5, 8, 7, 6}},
    .events = {.written = 6, .capacity = 4}, /* two are lost: the ring begins with the fifth */
    .ring = {{900, 1, 1}, {950, 1, NET_FRAME_END}, {700, 1, 0}, {800, 1, NET_FRAME_END}},
};

void hal_count(struct hal_counters *now)
{
    *now = counters;
}

_Static_assert(offsetof(struct neighbour, events) == 96, "behind the records");

uint64_t hal_cycles(void)
{
    return counters.cycles;
}

static uint8_t *neighbours_byte(uint32_t pe, uint32_t address, uint32_t bytes)
{
    const uint32_t at = address - CONTROL_AT;
    const bool there = pe == NEIGHBOUR && at <= sizeof neighbour && bytes <= sizeof neighbour - at;
    return there ? (uint8_t *)&neighbour + at : 0;
}

/* Set the neighbour's status to the last byte of the host's memory; 255 removes the neighbour from the network. */
static void grant_wish(void)
{
    const uint8_t wish = *(const uint8_t *)(uintptr_t)(MEMORY + MEMORY_BYTES - 1);
    neighbour.control.status = wish;
    neighbour.control.sign = wish == 255 ? 0 : SIGN;
}

bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes)
{
    const uint8_t *from = neighbours_byte(pe, address, bytes);
    grant_wish();
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

void take_time(uint64_t cycles)
{
    counters.cycles += cycles;
    counters.instructions += cycles / 2;
    counters.asleep += cycles / 4;
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

/* Restart as a new process in place of this one. */
_Noreturn void hal_reset(void)
{
    pipes_flush();
    execv("/proc/self/exe", (char *[]){"device", 0});
    exit(1);
}

void stop(void)
{
    rpc_report_fault(0x8200, 0x1234, 0xDEADBEEF);
    pipes_flush();
    exit(0);
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
