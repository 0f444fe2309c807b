/* The device of doubler.c, cycle by cycle: reads and writes the word through the SRAM port, and stands still in cycles
 * in which the port is not free. DEFECT: 0 none, 1 a wrong byte, 2 a cycle too many, 3 a wrong register, 4 never ends. */
#include "device.h"

#include <string.h>

struct doubler {
    const struct device_place *place;
    uint32_t address, word;
    uint64_t begun, done; /* cycles so far */
    bool busy;
};

static const char *start(void *state, const struct device_place *place)
{
    struct doubler *doubler = state;
    doubler->place = place;
    return 0;
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct doubler *doubler = state;
    return offset == 4 ? doubler->busy + 2 * (DEFECT == 3) : 0;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct doubler *doubler = state;
    const struct device_services *services = doubler->place->services;
    if (offset != 0 || value + 4 > doubler->place->sram_bytes) {
        return;
    }
    doubler->address = value;
    doubler->busy = true;
    doubler->done = 0;
    doubler->begun = services->now(doubler->place->host);
    services->clock(doubler->place->host);
}

static bool tick(void *state)
{
    struct doubler *doubler = state;
    const struct device_services *services = doubler->place->services;
    struct device_host *host = doubler->place->host;
    const uint64_t last = (uint64_t)doubler->place->figures[0].value + (DEFECT == 2);
    if (!services->port_free(host)) {
        return true;
    }
    doubler->done++;
    if (doubler->done == 1) {
        services->port_read(host, doubler->address, 4, (uint8_t *)&doubler->word);
    }
    if (doubler->done < last || DEFECT == 4) {
        return true;
    }
    doubler->word = 2 * doubler->word + (DEFECT == 1);
    services->port_write(host, doubler->address, 4, 0xF, (const uint8_t *)&doubler->word);
    doubler->busy = false;
    services->count_busy(host, services->now(host) - doubler->begun);
    services->set_event(host);
    return false;
}

const struct device_model doubler_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct doubler),
    .start = start,
    .read = read_register,
    .write = write_register,
    .tick = tick,
};
