/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What silicon faults on and Unicorn does not: misaligned accesses, which take a look at every instruction; a stack that
 * grows out of its place; a store into code that runs. And the debugger's stops, which need the same look. */
#include "mesh.h"

static uint32_t base_register(const struct pe *pe, uint32_t remarks)
{
    const uint32_t number = remarks >> BASE_REGISTER_SHIFT & 0xF;
    return pe_register(pe, number == 14 ? UC_ARM_REG_LR : UC_ARM_REG_R0 + (int)number);
}

static bool is_aligned(struct pe *pe, uint32_t remarks)
{
    if (!pe->mesh->strict || (remarks & NEEDS_WORDS) == 0) {
        return true;
    }
    const uint32_t base = base_register(pe, remarks);
    if (base % 4 != 0) {
        pe_fault(pe, FAULT_ALIGNMENT, base);
        return false;
    }
    return true;
}

static bool debugger_stops(struct pe *pe)
{
    const struct debug *debug = &pe->mesh->debug;
    if (!debug->on || debug->pe != pe->number || blocks_instructions(pe) == debug->resumed_at) {
        return false;
    }
    return debug->step || debug->breakpoints[pe->site / 2] != 0;
}

/* The instruction at `site` is next. False if the core stops before it. */
bool watch_instruction(struct pe *pe, uint32_t remarks)
{
    if (debugger_stops(pe)) {
        pe->stop = STOP_DEBUG;
        pe->mesh->unicorn->emu_stop(pe->core);
        return false;
    }
    return is_aligned(pe, remarks);
}

/* The debugged PE is to go on: to the next stop, or by one instruction. */
void watch_resume(struct mesh *mesh, bool step)
{
    struct debug *debug = &mesh->debug;
    debug->step = step;
    debug->stopped = false;
    debug->resumed_at = mesh->pes[debug->pe].instructions;
}

/* A block that uses the stack is about to run. False if it would leave its place: the core stops before it. */
bool watch_stack(struct pe *pe, const struct block *block, uint32_t address)
{
    const uint32_t bottom = pe->image->stack_bottom;
    if (bottom == 0 || block->joint.stack_bytes == 0) {
        return true;
    }
    const uint32_t pointer = pe_register(pe, UC_ARM_REG_SP);
    if (pointer < bottom || pointer - bottom >= block->joint.stack_bytes) {
        return true; /* below already: a stack of another place, which nobody told us of */
    }
    pe_fault_at(pe, FAULT_STACK, pointer - block->joint.stack_bytes, address + block->joint.stack_at);
    return false;
}

/* Whether [from, to) of a PE's memory holds code of a program that runs there. */
bool watch_is_code(const struct mesh *mesh, uint32_t pe, uint32_t from, uint32_t to)
{
    const struct image *image = mesh->pes[pe].image;
    const bool runs = mesh->pes[pe].state == PE_RUNNING || mesh->pes[pe].state == PE_ASLEEP;
    return runs && image != NULL && from < image->code_to && to > image->code_from;
}
