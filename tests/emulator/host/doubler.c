/* Accelerator as a third party might provide: doubles a word of SRAM, in `slowness` cycles of the board file. Compiled
 * for the host against device.h alone. */
#include "device.h"

#include <string.h>

struct doubler {
    const struct device_place *place;
    uint32_t address;
    uint32_t busy;
    uint64_t begun;
};

static const char *start(void *state, const struct device_place *place)
{
    struct doubler *doubler = state;
    doubler->place = place;
    return place->figure_count == 1 && strcmp(place->figures[0].name, "slowness") == 0 ? 0 : "slowness is missing";
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct doubler *doubler = state;
    return offset == 4 ? doubler->busy : 0;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct doubler *doubler = state;
    if (offset != 0) {
        return;
    }
    if (value % 4 != 0 || value + 4 > doubler->place->sram_bytes) {
        doubler->place->services->report_error(doubler->place->host, 1, value);
        return;
    }
    doubler->address = value;
    doubler->busy = 1;
    doubler->begun = doubler->place->services->now(doubler->place->host);
    doubler->place->services->finish_after(doubler->place->host, (uint64_t)doubler->place->figures[0].value);
}

static void finished(void *state)
{
    struct doubler *doubler = state;
    uint32_t word;
    memcpy(&word, doubler->place->sram + doubler->address, sizeof word);
    word *= 2;
    memcpy(doubler->place->sram + doubler->address, &word, sizeof word);
    doubler->busy = 0;
    const struct device_services *services = doubler->place->services;
    services->count_busy(doubler->place->host, services->now(doubler->place->host) - doubler->begun);
    doubler->place->services->set_event(doubler->place->host);
}

const struct device_model doubler_device = {
    .abi = DEVICE_ABI,
    .state_bytes = sizeof(struct doubler),
    .start = start,
    .read = read_register,
    .write = write_register,
    .finished = finished,
};
