/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Loads and stores outside the SRAM: registers, and the window onto other PEs' SRAM. */
#include <string.h>

#include "mesh.h"
#include "noc.h"

enum { PAGE_BYTES = 0x1000, WINDOW_CYCLES = 8 };

static void stop_before_access(struct pe *pe, enum stop reason)
{
    pe->stop = reason;
    pe->mesh->unicorn->emu_stop(pe->core);
}

/* Let everything happen up to the instruction that runs, and make that the present. False if the core stops before it
 * because another is behind. */
bool bus_meet_the_others(struct pe *pe)
{
    const bool met = schedule_settle(pe->mesh, blocks_time(pe));
    if (!met) {
        stop_before_access(pe, STOP_WAIT_FOR_OTHERS);
    }
    pe->mesh->now = blocks_time(pe);
    return met;
}

/* Under an IT instruction, where the core cannot stop. */
static bool go_on_with_others_behind(struct pe *pe)
{
    blocks_remember_registers(pe);
    schedule_settle(pe->mesh, blocks_time(pe));
    pe->mesh->now = blocks_time(pe);
    return true;
}

/* False if the core stops instead, and the access comes again later. */
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

/* The word that a store of some of its bytes makes. */
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

/* Of a RISC-V core Unicorn knows the instruction that accesses registers only if a hook looks there. */
static bool find_instruction(struct pe *pe, uint64_t from, uint64_t bytes)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const int both = UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE;
    uc_hook hook;
    return !pe->mesh->figures.riscv ||
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

/* ---- the window ---- */

static uint8_t *behind_window(struct pe *pe, uint64_t offset, struct pe **other)
{
    const struct figures *figures = &pe->mesh->figures;
    const uint32_t per_chip = figures->columns * figures->rows;
    const uint32_t first = pe->number / per_chip * per_chip;
    *other = &pe->mesh->pes[first + (uint32_t)(offset / figures->sram_bytes)];
    return (*other)->sram + offset % figures->sram_bytes;
}

/* An access to the last bytes of one PE and the first of the next is none to a PE's SRAM. */
static bool begin_window(struct pe *pe, uint64_t offset, unsigned size, enum fault_kind kind)
{
    if (!begin_shared(pe)) {
        return false;
    }
    if (offset % pe->mesh->figures.sram_bytes + size > pe->mesh->figures.sram_bytes) {
        pe_fault(pe, kind, (uint32_t)(pe->mesh->figures.window_base + offset));
        return false;
    }
    return true;
}

static uint64_t on_window_read(uc_engine *core, uint64_t offset, unsigned size, void *user)
{
    struct pe *pe = user;
    struct pe *other;
    uint64_t value = 0;
    (void)core;
    if (!begin_window(pe, offset, size, FAULT_READ)) {
        return 0;
    }
    const uint8_t *place = behind_window(pe, offset, &other);
    if (!shadow_is_written(other, (uint32_t)(place - other->sram), size)) {
        pe_fault(pe, FAULT_UNWRITTEN, (uint32_t)(pe->mesh->figures.window_base + offset));
        return 0;
    }
    memcpy(&value, place, size);
    const uint64_t extra = 2 * (uint64_t)noc_distance(pe, other) * pe->mesh->figures.hop_cycles + WINDOW_CYCLES;
    pe->cycles += extra;
    return value;
}

static void on_window_write(uc_engine *core, uint64_t offset, unsigned size, uint64_t value, void *user)
{
    struct pe *pe = user;
    struct pe *other;
    (void)core;
    if (!begin_window(pe, offset, size, FAULT_WRITE)) {
        return;
    }
    blocks_site_stores_to_registers(pe);
    uint8_t *place = behind_window(pe, offset, &other);
    const uint32_t address = (uint32_t)(place - other->sram);
    if (watch_is_code(pe->mesh, other->number, address, address + size)) {
        pe->mesh->fault_other = other->number;
        pe_fault(pe, FAULT_FOREIGN_CODE, address);
        return;
    }
    memcpy(place, &value, size);
    shadow_written(other, address, size);
    blocks_forget(other, address, address + size);
}

const char *bus_attach_window(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    const uint64_t bytes = (uint64_t)figures->columns * figures->rows * figures->sram_bytes;
    const uc_err error =
        pe->mesh->unicorn->mmio_map(pe->core, figures->window_base, bytes, on_window_read, pe, on_window_write, pe);
    return error == UC_ERR_OK && find_instruction(pe, figures->window_base, bytes) ? NULL : "the window overlaps another device";
}
