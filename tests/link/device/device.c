/* A device for the link's tests: the RPC server over a HAL of pipes, with the net of shifter.c.
 * stdin and stdout are the link. Each time the server sleeps with nothing to read, stderr gets the number of bytes it has
 * read so far. */
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal.h"
#include "rpc.h"
#include "shifter.h"

enum { PE = 5, OBSERVER_CYCLES = 500 };

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

void take_time(uint64_t cycles)
{
    counters.cycles += cycles;
    counters.instructions += cycles / 2;
    counters.asleep += cycles / 4;
}

void expect_observer(void)
{
    being_observed = true;
}

void stop(void)
{
    rpc_report_fault(0x8200, 0x1234, 0xDEADBEEF);
    flush();
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
