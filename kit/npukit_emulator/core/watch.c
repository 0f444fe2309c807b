/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Faults of silicon that Unicorn does not raise: misaligned accesses and FPU instructions, mostly found at the start of
 * a block; a stack overflow; a store into running code. Also the debugger's stops, which check each instruction. */
#include "mesh.h"

static uint32_t core_register(const struct pe *pe, uint32_t number)
{
    return pe_register(pe, number == 14 ? UC_ARM_REG_LR : UC_ARM_REG_R0 + (int)number);
}

/* Check the alignment of the next access to several words. */
bool watch_words(struct pe *pe, uint32_t remarks, uint32_t address)
{
    const uint32_t base = core_register(pe, remarks >> BASE_REGISTER_SHIFT & 0xF);
    if (base % 4 != 0) {
        pe_fault_at(pe, FAULT_ALIGNMENT, base, address);
        return false;
    }
    return true;
}

static bool has_fpu(struct pe *pe, const struct joint *joint, uint32_t address)
{
    if (joint->fpu_at == 0 || pe->fpu != 0) {
        return true;
    }
    pe_fault_at(pe, FAULT_NO_FPU, 0, address + joint->fpu_at - 1);
    return false;
}

static bool words_are_aligned(struct pe *pe, const struct joint *joint, uint32_t address)
{
    for (uint32_t i = 0; i < joint->need_count; i++) {
        const struct need *need = &joint->needs[i];
        const uint32_t base = core_register(pe, need->core_register) + (uint32_t)need->added;
        if (base % 4 != 0) {
            pe_fault_at(pe, FAULT_ALIGNMENT, base, address + need->at);
            return false;
        }
    }
    return true;
}

static bool debugger_stops(struct pe *pe)
{
    const struct debug *debug = &pe->mesh->debug;
    if (!debug->on || debug->pe != pe->number || blocks_instructions(pe) == debug->resumed_at) {
        return false;
    }
    return debug->step || debug->breakpoints[(pe->site - pe->code_base) / 2] != 0;
}

/* Check the next instruction, at `site`. False if the core stops there. */
bool watch_instruction(struct pe *pe)
{
    if (debugger_stops(pe)) {
        pe->stop = STOP_DEBUG;
        pe->mesh->unicorn->emu_stop(pe->core);
        return false;
    }
    return true;
}

/* Let the debugged PE continue to the next stop, or by one instruction. */
void watch_resume(struct mesh *mesh, bool step)
{
    struct debug *debug = &mesh->debug;
    debug->step = step;
    debug->stopped = false;
    debug->resumed_at = mesh->pes[debug->pe].instructions;
}

static bool stack_has_room(struct pe *pe, const struct block *block, uint32_t address)
{
    const uint32_t bottom = pe->image->stack_bottom;
    if (bottom == 0 || block->joint.stack_bytes == 0) {
        return true;
    }
    const uint32_t pointer = pe_stack_pointer(pe);
    if (pointer < bottom || pointer - bottom >= block->joint.stack_bytes) {
        return true; /* an undeclared stack elsewhere, or enough room */
    }
    pe_fault_at(pe, FAULT_STACK, pointer - block->joint.stack_bytes, address + block->joint.stack_at);
    return false;
}

/* Check a block before the run. False if an instruction of the block would fault: the core stops before the block. */
bool watch_block(struct pe *pe, const struct block *block, uint32_t address)
{
    const struct joint *joint = &block->joint;
    return has_fpu(pe, joint, address) && words_are_aligned(pe, joint, address) && stack_has_room(pe, block, address);
}

/* Whether [from, to) of a PE's memory holds code of the program running there. */
bool watch_is_code(const struct mesh *mesh, uint32_t pe, uint32_t from, uint32_t to)
{
    const struct image *image = mesh->pes[pe].image;
    const bool runs = mesh->pes[pe].state == PE_RUNNING || mesh->pes[pe].state == PE_ASLEEP;
    return runs && image != NULL && from < image->code_to && to > image->code_from;
}
