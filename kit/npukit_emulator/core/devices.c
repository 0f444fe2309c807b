/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The accelerators of a PE, and the services of device.h for their models. */
#include <stdio.h>
#include <stdlib.h>

#include "mesh.h"
#include "need.h"

static uint64_t now(const struct device_host *host)
{
    return host->pe->mesh->now;
}

/* A model without declared writes may have written anywhere. */
static void assume_written(const struct device_host *host)
{
    if (!host->declares) {
        shadow_written(host->pe, 0, host->place.sram_bytes);
    }
}

/* End the work, or delay the end by the cycles of DMA at the port meanwhile. */
static void may_be_finished(struct mesh *mesh, void *subject)
{
    struct device_host *host = subject;
    clock_settle(host->pe);
    const uint64_t taken = port_used(host->pe, host->since, host->until) + host->taken;
    host->taken = 0;
    if (taken > 0) {
        host->since = host->until;
        host->until += taken;
        events_post(mesh, host->until, host->pe->number, may_be_finished, host);
        return;
    }
    host->pending = false;
    host->model->finished(host->state);
    assume_written(host);
    beside_settle(host);
}

static void finish_after(struct device_host *host, uint64_t cycles)
{
    struct mesh *mesh = host->pe->mesh;
    const uint64_t delay = disturb_delay(host->pe);
    port_forget(host->pe);
    host->pending = true;
    host->taken = 0;
    host->since = mesh->now;
    host->until = mesh->now + cycles + delay;
    beside_delay(host, delay);
    events_post(mesh, host->until, host->pe->number, may_be_finished, host);
}

static void set_event(struct device_host *host)
{
    if (beside_did(host, true, 0)) {
        pe_set_event(host->pe);
    }
}

static uint32_t interrupt_of(struct device_host *host)
{
    return host->pe->mesh->accelerators[beside_device(host) - host->pe->devices].interrupt;
}

static void interrupt(struct device_host *host)
{
    struct pe *pe = host->pe;
    const uint32_t number = interrupt_of(host);
    if (number == NO_INTERRUPT || pe->riscv) {
        set_event(host);
    } else if (beside_did(host, true, 0)) {
        pe_interrupt(pe, FIRST_INTERRUPT + number);
    }
}

/* Whether a device that works may pend an enabled interrupt. The core then stops at each event. */
bool devices_interrupt(const struct pe *pe)
{
    for (uint32_t i = 0; i < pe->mesh->accelerator_count; i++) {
        const uint32_t number = pe->mesh->accelerators[i].interrupt;
        if (number != NO_INTERRUPT && exceptions_enabled(pe, FIRST_INTERRUPT + number)) {
            return true;
        }
    }
    return false;
}

static void count_busy(struct device_host *host, uint64_t cycles)
{
    struct pe *pe = host->pe;
    const uint32_t which = (uint32_t)(host - pe->devices);
    if (!beside_did(host, false, cycles)) {
        return;
    }
    pe->accelerators_busy += cycles;
    trace_record(pe->mesh,
                 (struct trace_record){now(host) - cycles, now(host), TRACE_WORK, pe->number, which, 0, 0, 0});
}

static void report_error(struct device_host *host, uint32_t code, uint32_t address)
{
    host->pe->error_count++;
    host->pe->last_error = code;
    host->pe->last_error_address = address;
}

static void take_over(struct device_host *host)
{
    pe_needs_barrier(host->pe);
}

static void fault(struct device_host *host, uint32_t kind, uint32_t address)
{
    struct pe *pe = host->pe;
    pe_fault_at(pe, kind, address, pe->in_access ? pe->site : pe->pc);
}

static void undefined(struct device_host *host, const char *what, const char *of_what, uint32_t address)
{
    struct mesh *mesh = host->pe->mesh;
    snprintf(mesh->fault_what, sizeof mesh->fault_what, "%s %s", what, of_what);
    fault(host, FAULT_UNDEFINED_USE, address);
}

static void reads(struct device_host *host, uint32_t address, uint32_t bytes)
{
    races_work_accesses(beside_device(host), address, bytes, false);
    if (!shadow_is_written(host->pe, address, bytes)) {
        fault(host, FAULT_DEVICE_UNWRITTEN, address);
    }
}

static void writes(struct device_host *host, uint32_t address, uint32_t bytes)
{
    host->declares = true;
    if (watch_is_code(host->pe->mesh, host->pe->number, address, address + bytes)) {
        fault(host, FAULT_DEVICE_CODE, address);
    }
    races_work_accesses(beside_device(host), address, bytes, true);
    shadow_written(host->pe, address, bytes);
}

static void fetches(struct device_host *host, uint32_t address, uint32_t bytes)
{
    races_work_begins(beside_device(host), address);
    beside_fetched(host, address);
    reads(host, address, bytes);
}

static const struct device_services services = {
    now,       finish_after, set_event, interrupt, count_busy,  report_error,    take_over,
    undefined, reads,        writes,    fetches,   clock_start, clock_port_free, clock_port_read,
    clock_port_write,
};

static uint32_t read_device(struct pe *pe, void *device, uint32_t offset)
{
    struct device_host *host = device;
    const uint32_t which = (uint32_t)(host - pe->devices);
    pe->read_address = (uint32_t)pe->mesh->accelerators[which].base + offset;
    pe->read_value = host->model->read(host->state, offset);
    beside_read(host, offset, pe->read_value);
    if (!beside_works(host)) {
        races_work_seen(host);
    }
    return pe->read_value;
}

static void write_device(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct device_host *host = device;
    beside_begin(host);
    races_work_asked(host, value);
    host->model->write(host->state, offset, value);
    if (devices_interrupt(pe)) { /* the core must not run beyond the end of the work */
        pe->slice_end = pe->mesh->now;
        pe->limit = 0;
    }
    beside_write(host, offset, value);
}

/* A device, or a model beside a device with memory of its own. */
const char *devices_create(struct pe *pe, struct device_host *host, const struct device_model *model,
                           const struct accelerator *accelerator, uint8_t *sram)
{
    if (model->abi != DEVICE_ABI) {
        return "an accelerator's model was made for another version of device.h";
    }
    host->pe = pe;
    host->model = model;
    host->state = needed(calloc(1, model->state_bytes));
    const uint32_t bytes = accelerator->scratchpad_bytes;
    uint8_t *scratchpad = bytes > 0 ? needed(calloc(1, bytes)) : NULL;
    host->place = (struct device_place){host, &services, sram, pe->mesh->figures.sram_bytes, scratchpad, bytes,
                                        accelerator->figures, accelerator->figure_count,
                                        pe->written != NULL || sram != pe->sram};
    return model->start(host->state, &host->place);
}

static const char *attach(struct pe *pe, struct device_host *host, const struct accelerator *accelerator)
{
    const char *complaint = devices_create(pe, host, accelerator->model, accelerator, pe->sram);
    if (complaint == NULL) {
        complaint = beside_attach(pe, host, accelerator);
    }
    const struct bus_port port = {NULL, host, read_device, write_device, NULL, false, true, 0};
    if (complaint == NULL) {
        complaint = bus_attach(pe, accelerator->base, accelerator->register_bytes, port);
    }
    const bool done = complaint != NULL || accelerator->scratchpad_bytes == 0;
    return done ? complaint : bus_attach_scratchpad(host, accelerator->scratchpad_base);
}

const char *devices_attach(struct pe *pe)
{
    const char *complaint = NULL;
    for (uint32_t i = 0; i < pe->mesh->accelerator_count && complaint == NULL; i++) {
        if ((pe->lacking >> i & 1) == 0) {
            complaint = attach(pe, &pe->devices[i], &pe->mesh->accelerators[i]);
        }
    }
    return complaint;
}

void devices_end(struct pe *pe)
{
    for (uint32_t i = 0; i < DEVICES_PER_PE; i++) {
        struct device_host *host = &pe->devices[i];
        if (host->model != NULL && host->model->end != NULL) {
            host->model->end(host->state);
        }
        beside_free(host);
        free(host->place.scratchpad);
        free(host->state);
    }
}
