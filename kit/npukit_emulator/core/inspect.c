/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Access to a board that stands still: counters, traces, faults, waits, and the debugger's changes. */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "need.h"

void mesh_count(const struct mesh *mesh, uint32_t number, struct counters *counters)
{
    const struct pe *pe = &mesh->pes[number];
    const uint64_t sleeping = pe->state == PE_ASLEEP && mesh->now > pe->cycles ? mesh->now - pe->cycles : 0;
    *counters = (struct counters){
        .instructions = pe->instructions,
        .cycles = pe->cycles + sleeping,
        .asleep = pe->asleep + sleeping,
        .accelerators_busy = pe->accelerators_busy,
        .dma_bytes = pe->bytes_sent,
        .device_errors = pe->error_count,
        .last_device_error = pe->last_error,
        .last_device_error_address = pe->last_error_address,
        .running = pe->state == PE_RUNNING,
    };
}

void mesh_trace(struct mesh *mesh, int on)
{
    trace_switch(mesh, on != 0);
}

void mesh_trace_mark(struct mesh *mesh, uint32_t pe, const uint32_t *addresses, size_t count)
{
    trace_mark(&mesh->pes[pe], addresses, count);
}

size_t mesh_trace_take(struct mesh *mesh, struct trace_record *records, size_t room)
{
    return trace_take(mesh, records, room);
}

/* Registers of RISC-V: a0-a7, t0-t2, s0, s1, sp, ra, pc, gp. */
static void riscv_registers(const struct pe *pe, uint32_t *values)
{
    static const int numbers[] = {10, 11, 12, 13, 14, 15, 16, 17, 5, 6, 7, 8, 9, 2, 1, 0, 3};
    for (int i = 0; i < 17; i++) {
        values[i] = pe_register(pe, UC_RISCV_REG_X0 + numbers[i]);
    }
    values[15] = pe->pc;
}

static void core_registers(const struct pe *pe, uint32_t *values)
{
    if (pe->riscv) {
        riscv_registers(pe, values);
        return;
    }
    for (int i = 0; i < 13; i++) {
        values[i] = pe_register(pe, UC_ARM_REG_R0 + i);
    }
    values[13] = pe_register(pe, UC_ARM_REG_SP);
    values[14] = pe_register(pe, UC_ARM_REG_LR);
    values[15] = pe->pc;
    values[16] = pe_register(pe, UC_ARM_REG_XPSR);
}

void mesh_fault(const struct mesh *mesh, struct fault *fault)
{
    const struct pe *pe = mesh->faulted;
    *fault = (struct fault){0};
    if (pe == NULL) {
        return;
    }
    fault->kind = pe->fault_kind;
    fault->pe = pe->number;
    fault->address = pe->fault_address;
    fault->other = mesh->fault_other;
    fault->since = mesh->fault_since;
    memcpy(fault->what, mesh->fault_what, sizeof fault->what);
    if (pe->fault_kind == FAULT_CHANGED) {
        memcpy(fault->what, pe->changed, sizeof pe->changed);
    }
    core_registers(pe, fault->registers);
    fault->race = pe->races != NULL ? pe->races->race : (struct race){0};
    fault->registers[15] = pe->fault_pc != 0 ? pe->fault_pc : pe->pc;
}

void *mesh_device(const struct mesh *mesh, uint32_t pe, uint32_t number)
{
    return mesh->pes[pe].devices[number].state;
}

void mesh_wait(const struct mesh *mesh, uint32_t number, struct wait *wait)
{
    const struct pe *pe = &mesh->pes[number];
    *wait = (struct wait){pe->state, pe->pc, pe->read_address, pe->read_value};
}

/* ---- the debugger ---- */

void mesh_be_strict(struct mesh *mesh, int races)
{
    shadow_create(mesh);
    if (races != 0) {
        races_create(mesh);
    }
}

void mesh_add_polled(struct mesh *mesh, uint32_t pe, struct code_range words)
{
    races_poll(&mesh->pes[pe], words.from, words.to);
}

void mesh_debug(struct mesh *mesh, uint32_t pe)
{
    uint8_t *breakpoints = needed(calloc(mesh->figures.code_bytes / 2, 1));
    mesh->debug = (struct debug){true, pe, breakpoints, true, false, UINT64_MAX};
}

void mesh_debug_break(struct mesh *mesh, uint32_t address, int on)
{
    const uint32_t place = address - mesh->pes[mesh->debug.pe].code_base;
    if (place < mesh->figures.code_bytes) {
        mesh->debug.breakpoints[place / 2] = on != 0;
    }
}

void mesh_debug_resume(struct mesh *mesh, int step)
{
    watch_resume(mesh, step != 0);
}

static int register_name(uint32_t number)
{
    static const int names[] = {UC_ARM_REG_SP, UC_ARM_REG_LR, UC_ARM_REG_PC, UC_ARM_REG_XPSR, UC_ARM_REG_FPSCR};
    if (number < 13) {
        return UC_ARM_REG_R0 + (int)number;
    }
    return number < 18 ? names[number - 13] : UC_ARM_REG_S0 + (int)(number - 18);
}

void mesh_registers(const struct mesh *mesh, uint32_t number, uint32_t *values)
{
    const struct pe *pe = &mesh->pes[number];
    core_registers(pe, values);
    for (uint32_t i = 17; i < REGISTERS; i++) {
        values[i] = pe_register(pe, register_name(i));
    }
}

void mesh_set_register(struct mesh *mesh, uint32_t number, uint32_t name, uint32_t value)
{
    struct pe *pe = &mesh->pes[number];
    if (name == 15) {
        blocks_jump(pe, value & ~1U);
    } else if (pe->core != NULL && name < REGISTERS) {
        mesh->unicorn->reg_write(pe->core, register_name(name), &value);
    }
}
