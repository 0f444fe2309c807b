/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A device, usually in RTL, with a C model beside. Both receive the same stores of registers. The model computes
 * in a copy of the memory. Each work must end in the same cycle, with the same bytes, and registers must read the same;
 * all else is a fault. Checks of the software come from the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "need.h"

/* PATIENCE: most cycles between the ends of a work in the device and in the model. */
enum { PATIENCE = 1000000 };

/* Works and events of the device, or of the model, so far. The last ended in cycle `at`, after `cycles`. */
struct done {
    uint64_t works, events, at, cycles;
};

struct beside {
    struct device_host *device, *model;
    struct done by_device, by_model;
    uint64_t works, events; /* compared so far */
    uint64_t begun;    /* cycle of the last store to a register of the idle device */
    uint32_t command;  /* address of the last command fetched by the model */
    uint8_t *sram;     /* the model's memory */
    uint8_t *before;   /* the memory at the last comparison */
    uint8_t *wrote;    /* 1 for each byte written by the device since then */
};

static struct mesh *mesh_of(const struct beside *beside)
{
    return beside->device->pe->mesh;
}

/* Report a difference in the words of TELL(). */
static void differ(const struct beside *beside)
{
    struct pe *pe = beside->device->pe;
    pe->mesh->fault_other = (uint32_t)(beside->device - pe->devices);
    pe->mesh->fault_since = beside->begun;
    pe_fault_at(pe, FAULT_DIFFERS, beside->command, pe->in_access ? pe->site : pe->pc);
}

#define TELL(beside, ...) \
    (snprintf(mesh_of(beside)->fault_what, sizeof mesh_of(beside)->fault_what, __VA_ARGS__), differ(beside))

static void forget(struct beside *beside)
{
    const struct device_place *place = &beside->device->place;
    memcpy(beside->before, beside->sram, place->sram_bytes);
    memset(beside->wrote, 0, place->sram_bytes);
}

/* Whether a byte in a range differs after a change by the device or the model. */
static bool differs_in(const struct beside *beside, uint32_t from, uint32_t to)
{
    const uint8_t *device = beside->device->place.sram;
    uint32_t found = 0;
    for (uint32_t at = from; at < to; at++) {
        const bool changed = (beside->wrote[at] != 0) | (beside->sram[at] != beside->before[at]);
        found |= changed & (device[at] != beside->sram[at]);
    }
    return found != 0;
}

/* True if the scratchpads differ. */
static bool scratchpad_differs(const struct beside *beside)
{
    const struct device_place *device = &beside->device->place, *model = &beside->model->place;
    uint32_t at = 0;
    while (at < device->scratchpad_bytes && device->scratchpad[at] == model->scratchpad[at]) {
        at++;
    }
    if (at < device->scratchpad_bytes) {
        TELL(beside, "byte %#x of the scratchpad is %#04x by the RTL, %#04x by the model", at, device->scratchpad[at],
             model->scratchpad[at]);
    }
    return at < device->scratchpad_bytes;
}

static void compare_bytes(struct beside *beside)
{
    const struct device_place *place = &beside->device->place;
    if (scratchpad_differs(beside)) {
        return;
    }
    if (differs_in(beside, 0, place->sram_bytes)) {
        uint32_t at = 0;
        while (!differs_in(beside, at, at + 1)) {
            at++;
        }
        TELL(beside, "address %#x holds %#04x by the RTL, %#04x by the model", at, place->sram[at], beside->sram[at]);
        return;
    }
    forget(beside);
}

static void compare(struct beside *beside)
{
    const struct done *device = &beside->by_device, *model = &beside->by_model;
    mesh_of(beside)->compared += device->works - beside->works;
    beside->works = device->works;
    beside->events = device->events;
    if (device->at != model->at) {
        TELL(beside, "the RTL ends in cycle %llu after %llu cycles, the model in cycle %llu after %llu",
             (unsigned long long)device->at, (unsigned long long)device->cycles, (unsigned long long)model->at,
             (unsigned long long)model->cycles);
        return;
    }
    compare_bytes(beside);
}

/* Fault if the device or the model is far ahead of the other: by more than a work and an event, or by many cycles. */
static void look_for_the_late(const struct beside *beside)
{
    const struct done *device = &beside->by_device, *model = &beside->by_model;
    const uint64_t by_device = device->works + device->events, by_model = model->works + model->events;
    const struct done *first = by_device > by_model ? device : model;
    const uint64_t ahead = by_device > by_model ? by_device - by_model : by_model - by_device;
    if (ahead > 2 || (ahead > 0 && mesh_of(beside)->now > first->at + PATIENCE)) {
        TELL(beside, "the %s ends in cycle %llu, the %s has not ended by cycle %llu",
             first == device ? "RTL" : "model", (unsigned long long)first->at, first == device ? "model" : "RTL",
             (unsigned long long)mesh_of(beside)->now);
    }
}

/* Compare when both have done the same number of works. Called when all writes of the works are in memory. */
void beside_settle(struct device_host *host)
{
    struct beside *beside = host->beside;
    if (beside == NULL || mesh_of(beside)->faulted != NULL) {
        return;
    }
    const struct done *device = &beside->by_device, *model = &beside->by_model;
    if (device->works != model->works || device->events != model->events) {
        look_for_the_late(beside);
    } else if (device->works != beside->works || device->events != beside->events) {
        compare(beside);
    }
}

/* A work has ended after `cycles`, or the event is set. True if the PE takes notice: by a device, not by the model. */
bool beside_did(struct device_host *host, bool event, uint64_t cycles)
{
    struct beside *beside = host->beside;
    if (beside == NULL) {
        return true;
    }
    struct done *done = host == beside->device ? &beside->by_device : &beside->by_model;
    done->works += event ? 0 : 1;
    done->events += event ? 1 : 0;
    done->cycles = event ? done->cycles : cycles;
    done->at = host->pe->mesh->now;
    return host == beside->device;
}

/* The device of a model beside, or the device itself. */
struct device_host *beside_device(struct device_host *host)
{
    return host->beside == NULL ? host : host->beside->device;
}

bool beside_works(const struct device_host *host)
{
    return host->pending || host->clocked || (host->beside != NULL && host->beside->model->pending);
}

void beside_write(struct device_host *host, uint32_t offset, uint32_t value)
{
    struct beside *beside = host->beside;
    if (beside != NULL) {
        beside->model->model->write(beside->model->state, offset, value);
    }
}

/* A register of the device is about to be written: the model's memory becomes the device's, unless either works. */
void beside_begin(struct device_host *host)
{
    struct beside *beside = host->beside;
    if (beside != NULL && !beside_works(host)) {
        memcpy(beside->sram, host->place.sram, host->place.sram_bytes);
        if (host->place.scratchpad_bytes > 0) {
            memcpy(beside->model->place.scratchpad, host->place.scratchpad, host->place.scratchpad_bytes);
        }
        forget(beside);
        beside->begun = mesh_of(beside)->now;
    }
}

/* The core has read a register. A core under an IT instruction may read while events are due. */
void beside_read(struct device_host *host, uint32_t offset, uint32_t value)
{
    const struct beside *beside = host->beside;
    struct mesh *mesh = host->pe->mesh;
    if (beside == NULL || events_first_time(mesh) <= mesh->now) {
        return;
    }
    const uint32_t by_model = beside->model->model->read(beside->model->state, offset);
    if (value != by_model) {
        TELL(beside, "its register %#x reads as %#x in RTL, as %#x by the model", offset, value, by_model);
    }
}

void beside_fetched(struct device_host *host, uint32_t address)
{
    if (host->beside != NULL) {
        host->beside->command = address;
    }
}

void beside_wrote(struct device_host *host, uint32_t at)
{
    if (host->beside == NULL) {
        host->place.services->writes(host, at, 1);
    } else {
        host->beside->wrote[at] = 1;
    }
}

/* A delay of a disturbed schedule: of a device without a model, or of both. */
void beside_delay(struct device_host *host, uint64_t cycles)
{
    struct device_host *device = beside_device(host);
    device->delay += cycles;
    device->delayed = host->pe->mesh->now;
}

const char *beside_attach(struct pe *pe, struct device_host *host, const struct accelerator *accelerator)
{
    const uint32_t bytes = pe->mesh->figures.sram_bytes;
    struct device_host *model = &pe->devices[DEVICES_PER_PE - 1 - (host - pe->devices)];
    if (accelerator->beside == NULL) {
        return NULL;
    }
    if (model <= host || model->model != NULL) {
        return "the board has too many accelerators for models beside them";
    }
    struct beside *beside = needed(calloc(1, sizeof *beside));
    *beside = (struct beside){.device = host, .model = model, .sram = needed(calloc(1, bytes)),
                              .before = needed(calloc(1, bytes)), .wrote = needed(calloc(1, bytes))};
    host->beside = model->beside = beside;
    return devices_create(pe, model, accelerator->beside, accelerator, beside->sram);
}

void beside_free(struct device_host *host)
{
    struct beside *beside = host->beside;
    if (beside != NULL) {
        beside->device->beside = beside->model->beside = NULL;
        free(beside->sram);
        free(beside->before);
        free(beside->wrote);
        free(beside);
    }
}
