/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Loads and stores outside the SRAM: registers, and memories that PEs share. */
#include <string.h>

#include "mesh.h"
#include "noc.h"

enum { PAGE_BYTES = 0x1000 };

static void stop_before_access(struct pe *pe, enum stop reason)
{
    pe->stop = reason;
    pe->mesh->unicorn->emu_stop(pe->core);
}

/* Process all events up to the running instruction, and advance `now` to it. False if another PE is behind: the core
 * stops before the instruction. */
bool bus_meet_the_others(struct pe *pe)
{
    const bool met = schedule_settle(pe->mesh, blocks_time(pe));
    if (!met) {
        stop_before_access(pe, STOP_WAIT_FOR_OTHERS);
    }
    pe->mesh->now = blocks_time(pe);
    return met;
}

/* Access with other PEs behind, because the core cannot stop under an IT instruction. */
static bool go_on_with_others_behind(struct pe *pe)
{
    blocks_remember_registers(pe);
    schedule_settle(pe->mesh, blocks_time(pe));
    pe->mesh->now = blocks_time(pe);
    return true;
}

/* False if the core stops before the access, which is repeated later. */
static bool begin(struct pe *pe)
{
    if (pe->stop == STOP_NONE && pe->state == PE_DEAD) {
        stop_before_access(pe, STOP_WAIT_FOR_OTHERS);
    }
    if (pe->stop == STOP_NONE && !blocks_site_known(pe)) {
        stop_before_access(pe, STOP_INSTRUMENT);
    }
    return pe->stop == STOP_NONE;
}

static bool begin_shared(struct pe *pe)
{
    if (!begin(pe)) {
        return false;
    }
    if (pe->alone) {
        stop_before_access(pe, STOP_WAIT_FOR_OTHERS);
        return false;
    }
    return blocks_site_conditional(pe) ? go_on_with_others_behind(pe) : bus_meet_the_others(pe);
}

static bool begin_register(const struct bus_port *port, uint64_t offset, unsigned size)
{
    if (port->bytes && size == 1) {
        return port->shared ? begin_shared(port->pe) : begin(port->pe);
    }
    const bool narrow = size < 4 && offset % size == 0 && port->narrow != NULL && port->narrow((uint32_t)offset & ~3U);
    if (!narrow && (port->bytes || size != 4 || offset % 4 != 0)) {
        pe_fault(port->pe, FAULT_ACCESS_SIZE, (uint32_t)offset);
        return false;
    }
    return port->shared ? begin_shared(port->pe) : begin(port->pe);
}

static uint64_t on_read(uc_engine *core, uint64_t offset, unsigned size, void *user)
{
    const struct bus_port *port = user;
    (void)core;
    offset -= port->first;
    if (!begin_register(port, offset, size)) {
        return 0;
    }
    if (port->bytes) {
        return port->read(port->pe, port->device, (uint32_t)offset);
    }
    return port->read(port->pe, port->device, (uint32_t)offset & ~3U) >> 8 * (offset % 4);
}

/* The register's word after a store to some of the bytes. */
static uint32_t merged(const struct bus_port *port, uint64_t offset, unsigned size, uint64_t value)
{
    if (size == 4) {
        return (uint32_t)value;
    }
    const uint32_t shift = 8 * (uint32_t)(offset % 4), mask = ((1U << 8 * size) - 1) << shift;
    const uint32_t word = port->read(port->pe, port->device, (uint32_t)offset & ~3U);
    return (word & ~mask) | ((uint32_t)value << shift & mask);
}

static void on_write(uc_engine *core, uint64_t offset, unsigned size, uint64_t value, void *user)
{
    const struct bus_port *port = user;
    (void)core;
    offset -= port->first;
    if (begin_register(port, offset, size)) {
        blocks_site_stores_to_registers(port->pe);
        port->pe->in_access = true;
        if (port->bytes) {
            port->write(port->pe, port->device, (uint32_t)offset, (uint32_t)value);
        } else {
            port->write(port->pe, port->device, (uint32_t)offset & ~3U, merged(port, offset, size, value));
        }
        port->pe->in_access = false;
    }
}

static void on_access(uc_engine *core, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
    (void)core, (void)type, (void)address, (void)size, (void)value, (void)user;
}

/* On a RISC-V core Unicorn finds the instruction of a register access only if a hook covers the address. */
static bool find_instruction(struct pe *pe, uint64_t from, uint64_t bytes)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const int both = UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE;
    uc_hook hook;
    return !pe->riscv ||
           unicorn->hook_add(pe->core, &hook, both, (void *)on_access, pe, from, from + bytes - 1) == UC_ERR_OK;
}

const char *bus_attach(struct pe *pe, uint64_t base, uint32_t size, struct bus_port port)
{
    struct bus_port *place = &pe->ports[pe->port_count++];
    *place = port;
    place->pe = pe;
    place->first = (uint32_t)(base % PAGE_BYTES);
    const uint64_t bytes = ((uint64_t)size + place->first + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    const uc_err error = pe->mesh->unicorn->mmio_map(pe->core, base - place->first, bytes, on_read, place, on_write, place);
    const bool done = error == UC_ERR_OK && find_instruction(pe, base - place->first, bytes);
    return done ? NULL : "two devices of the board lie at the same address";
}

/* ---- memories of other PEs ---- */

/* Fault if an access crosses the end of the memory. */
static bool begin_window(const struct window *window, uint64_t offset, unsigned size, enum fault_kind kind)
{
    if (!begin_shared(window->pe)) {
        return false;
    }
    if (offset + size > window->bytes) {
        pe_fault(window->pe, kind, (uint32_t)(window->base + offset));
        return false;
    }
    return true;
}

static uint64_t on_window_read(uc_engine *core, uint64_t offset, unsigned size, void *user)
{
    const struct window *window = user;
    const struct pe *other = window->other;
    const uint32_t address = (uint32_t)(window->base + offset);
    uint64_t value = 0;
    (void)core;
    if (!begin_window(window, offset, size, FAULT_READ)) {
        return 0;
    }
    if (!shadow_is_written(other, address, size)) {
        pe_fault(window->pe, FAULT_UNWRITTEN, address);
        return 0;
    }
    races_window(window->pe, (struct place){other->number, address}, size, false);
    memcpy(&value, other->sram + window->place + offset, size);
    return value;
}

static void on_window_write(uc_engine *core, uint64_t offset, unsigned size, uint64_t value, void *user)
{
    const struct window *window = user;
    struct pe *pe = window->pe, *other = window->other;
    const uint32_t address = (uint32_t)(window->base + offset);
    (void)core;
    if (!begin_window(window, offset, size, FAULT_WRITE)) {
        return;
    }
    blocks_site_stores_to_registers(pe);
    if (watch_is_code(pe->mesh, other->number, address, address + size)) {
        pe->mesh->fault_other = other->number;
        pe_fault(pe, FAULT_FOREIGN_CODE, address);
        return;
    }
    races_window(pe, (struct place){other->number, address}, size, true);
    memcpy(other->sram + window->place + offset, &value, size);
    shadow_written(other, address, size);
    blocks_forget(other, address, address + size);
}

static const char *attach_window(struct window window)
{
    struct pe *pe = window.pe;
    struct window *kept = pe->window_count < MOST_WINDOWS ? &pe->windows[pe->window_count++] : NULL;
    if (kept == NULL) {
        return "too many PEs share memories";
    }
    *kept = window;
    const uc_err error =
        pe->mesh->unicorn->mmio_map(pe->core, window.base, window.bytes, on_window_read, kept, on_window_write, kept);
    const bool done = error == UC_ERR_OK && find_instruction(pe, window.base, window.bytes);
    return done ? NULL : "another PE's memory overlaps another device";
}

/* Memory at the same address for all PEs, emulated as DRAM without a record of written bytes or code. */
static uint64_t on_common_read(uc_engine *core, uint64_t offset, unsigned size, void *user)
{
    struct pe *pe = user;
    uint64_t bytes, value = 0;
    (void)core;
    if (begin_shared(pe)) {
        races_window(pe, (struct place){DRAM_OF_CHIP, (uint32_t)offset}, size, false);
        memcpy(&value, noc_memory(pe->mesh, DRAM_OF_CHIP, &bytes) + offset, size);
    }
    return value;
}

static void on_common_write(uc_engine *core, uint64_t offset, unsigned size, uint64_t value, void *user)
{
    struct pe *pe = user;
    uint64_t bytes;
    (void)core;
    if (begin_shared(pe)) {
        blocks_site_stores_to_registers(pe);
        races_window(pe, (struct place){DRAM_OF_CHIP, (uint32_t)offset}, size, true);
        memcpy(noc_memory(pe->mesh, DRAM_OF_CHIP, &bytes) + offset, &value, size);
    }
}

static const char *attach_common(struct pe *pe)
{
    const uint64_t base = pe->mesh->figures.window_base, bytes = pe->mesh->figures.dram_bytes;
    uint64_t room;
    if (bytes == 0) {
        return NULL;
    }
    const bool made = noc_memory(pe->mesh, DRAM_OF_CHIP, &room) != NULL &&
        pe->mesh->unicorn->mmio_map(pe->core, base, bytes, on_common_read, pe, on_common_write, pe) == UC_ERR_OK;
    return made && find_instruction(pe, base, bytes) ? NULL : "the memory that PEs share overlaps another device";
}

/* ---- scratchpads of devices ---- */

static bool begin_scratchpad(const struct device_host *host, uint64_t offset, unsigned size, enum fault_kind kind)
{
    if (!begin_shared(host->pe)) {
        return false;
    }
    if (offset + size > host->place.scratchpad_bytes) {
        pe_fault(host->pe, kind, (uint32_t)offset);
        return false;
    }
    return true;
}

static uint64_t on_scratchpad_read(uc_engine *core, uint64_t offset, unsigned size, void *user)
{
    const struct device_host *host = user;
    uint64_t value = 0;
    (void)core;
    if (begin_scratchpad(host, offset, size, FAULT_READ)) {
        memcpy(&value, host->place.scratchpad + offset, size);
    }
    return value;
}

static void on_scratchpad_write(uc_engine *core, uint64_t offset, unsigned size, uint64_t value, void *user)
{
    const struct device_host *host = user;
    (void)core;
    if (begin_scratchpad(host, offset, size, FAULT_WRITE)) {
        blocks_site_stores_to_registers(host->pe);
        memcpy(host->place.scratchpad + offset, &value, size);
    }
}

const char *bus_attach_scratchpad(struct device_host *host, uint64_t base)
{
    const struct unicorn *unicorn = host->pe->mesh->unicorn;
    const uint64_t bytes = ((uint64_t)host->place.scratchpad_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    const bool mapped = base % PAGE_BYTES == 0 && unicorn->mmio_map(host->pe->core, base, bytes, on_scratchpad_read, host,
                                                                    on_scratchpad_write, host) == UC_ERR_OK;
    const bool done = mapped && find_instruction(host->pe, base, bytes);
    return done ? NULL : "the scratchpad of an accelerator lies at no multiple of 4 KB, or overlaps another device";
}

/* Map the memories of the other PEs at their own addresses, and the memory common to all. */
const char *bus_attach_others(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    const char *complaint = attach_common(pe);
    for (uint32_t other = 0; other < pe->mesh->pe_count; other++) {
        uint32_t place = 0;
        for (uint32_t i = 0; i < figures->memory_count && other != pe->number && complaint == NULL; i++) {
            const uint32_t bytes = figures->memories[i].bytes;
            struct pe *owner = &pe->mesh->pes[other];
            complaint = attach_window((struct window){pe, owner, owner->memory_bases[i], place, bytes});
            place += bytes;
        }
    }
    return complaint;
}
