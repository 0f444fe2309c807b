/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Devices called in each cycle, and their accesses of the SRAM port. The end of a cycle is an event at the next cycle:
 * all accesses of the cycle and all uses of the port by DMA have happened. A PE without a clocked device has no such
 * events. */
#include <string.h>

#include "mesh.h"

static void end_of_cycle(struct mesh *mesh, void *subject);

static void run_clock(struct pe *pe, uint64_t next)
{
    if (!pe->clock_runs) {
        pe->clock_runs = true;
        pe->clock_due = next;
        events_post(pe->mesh, next, pe->number, end_of_cycle, pe);
    }
}

void clock_start(struct device_host *host)
{
    struct pe *pe = host->pe;
    if (!host->clocked) {
        host->clocked = true;
        host->since = pe->mesh->now;
        if (host->beside == NULL) { /* else the model draws for both */
            beside_delay(host, disturb_delay(pe));
        }
        run_clock(pe, pe->mesh->now + 1);
    }
}

/* A disturbed schedule delays the device in cycles without DMA, from the cycle of the delay's begin on. */
static bool is_stalled(struct device_host *host)
{
    if (host->pe->port_taken || host->delay == 0 || host->since < host->delayed) {
        return host->pe->port_taken;
    }
    host->delay--;
    return true;
}

static void tick(struct device_host *host)
{
    host->since = host->pe->mesh->now - 1;
    host->stalled = is_stalled(host);
    host->clocked = host->model->tick(host->state);
    beside_settle(host);
}

static bool dma_takes_port(const struct pe *pe)
{
    const uint64_t now = pe->mesh->now;
    return port_used(pe, now - 1, now) > 0;
}

/* Call the devices of an order. True if any works on. Devices beside a model come last: the model does not know which
 * cycles the device leaves to others. */
static bool tick_all(struct pe *pe, bool last)
{
    bool goes_on = false;
    for (uint32_t i = 0; i < DEVICES_PER_PE; i++) {
        struct device_host *host = &pe->devices[i];
        if (host->clocked && (host->beside != NULL) == last) {
            tick(host);
            goes_on = goes_on || host->clocked;
        }
    }
    return goes_on;
}

/* End the present cycle, unless this has happened. An end of work at the same cycle comes afterwards. */
void clock_settle(struct pe *pe)
{
    const uint64_t now = pe->mesh->now;
    if (!pe->clock_runs || pe->clock_due != now) {
        return;
    }
    pe->clock_runs = false;
    pe->port_taken = dma_takes_port(pe);
    const bool first = tick_all(pe, false), last = tick_all(pe, true);
    if (first || last) {
        run_clock(pe, now + 1);
    }
}

static void end_of_cycle(struct mesh *mesh, void *subject)
{
    (void)mesh;
    clock_settle(subject);
}

/* ---- the SRAM port ---- */

bool clock_port_free(const struct device_host *host)
{
    return !host->stalled && !host->pe->port_taken;
}

/* The models by events lose this cycle, except the model beside the device. */
static void delay_models(const struct device_host *host)
{
    for (uint32_t i = 0; i < DEVICES_PER_PE; i++) {
        struct device_host *other = &host->pe->devices[i];
        const bool own = other->beside != NULL && other->beside == host->beside;
        other->taken += other->pending && !own ? 1 : 0;
    }
}

/* Take the port for the present cycle. False if the port is not free, or carries no such access. */
static bool take_port(struct device_host *host, uint32_t address, uint32_t bytes)
{
    const bool wide = bytes == DEVICE_WIDE && address % 4 == 0;
    if (!clock_port_free(host)) {
        return false;
    }
    if (!wide && (bytes == 0 || bytes > DEVICE_NARROW)) {
        host->place.services->undefined(host, "an access of the SRAM port", "that is neither wide nor narrow", address);
        return false;
    }
    host->pe->port_taken = true;
    delay_models(host);
    return true;
}

bool clock_port_read(struct device_host *host, uint32_t address, uint32_t bytes, uint8_t *data)
{
    const struct device_place *place = &host->place;
    if (!take_port(host, address, bytes)) {
        return false;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        data[i] = place->sram[(address + i) % place->sram_bytes];
    }
    return true;
}

bool clock_port_write(struct device_host *host, uint32_t address, uint32_t bytes, uint32_t strobe, const uint8_t *data)
{
    const struct device_place *place = &host->place;
    if (!take_port(host, address, bytes)) {
        return false;
    }
    for (uint32_t i = 0; i < bytes; i++) {
        const uint32_t at = (address + i) % place->sram_bytes;
        if ((strobe >> i & 1) != 0) {
            place->sram[at] = data[i];
            beside_wrote(host, at);
        }
    }
    return true;
}
