/* A device with registers above 4 KB, a scratchpad and an interrupt. A store to START moves 64 bytes from the scratchpad
 * to SRAM, a narrow access of the port each cycle. */
#include "device.h"

enum { START = 0x1800, BUSY = 0x1804, ENDED = 0x1808, BYTES = 64 };

struct mover {
    const struct device_place *place;
    uint32_t address, done, ended;
    bool busy;
};

static const char *start(void *state, const struct device_place *place)
{
    struct mover *mover = state;
    mover->place = place;
    return place->scratchpad_bytes >= BYTES ? 0 : "the scratchpad is too small";
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct mover *mover = state;
    return offset == BUSY ? mover->busy : offset == ENDED ? mover->ended : 0;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct mover *mover = state;
    if (offset == START) {
        mover->address = value;
        mover->done = 0;
        mover->busy = true;
        mover->place->services->clock(mover->place->host);
    }
}

static bool tick(void *state)
{
    struct mover *mover = state;
    const struct device_services *services = mover->place->services;
    struct device_host *host = mover->place->host;
    const uint8_t *from = mover->place->scratchpad + mover->done;
    const bool moved = services->port_write(host, mover->address + mover->done, DEVICE_NARROW, 0xFFFF, from);
    mover->done += moved ? DEVICE_NARROW : 0;
    if (mover->done == BYTES) {
        mover->busy = false;
        mover->ended = (uint32_t)services->now(host);
        services->count_busy(host, 4);
        services->interrupt(host);
    }
    return mover->busy;
}

const struct device_model mover_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct mover),
    .start = start,
    .read = read_register,
    .write = write_register,
    .tick = tick,
};
