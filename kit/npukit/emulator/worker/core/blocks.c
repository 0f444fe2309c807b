/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Counting: every block of instructions adds what it costs as it starts, from a table that is filled once.
 *
 * A register access happens in the middle of a block, and Unicorn does not say where. So a block that was seen to
 * access registers is instrumented: from then on each of its instructions says that it is next. The access that showed
 * it is undone first: the core stops before that instruction, and the count is wound back to it. */
#include <stdlib.h>

#include "mesh.h"

enum { NO_SITE = 1, SEV = 0xBF40, WIDE_HINT = 0xF3AF, WIDE_SEV = 0x8004 };

static uint32_t halfword(const struct pe *pe, uint32_t address)
{
    return address + 2 > pe->mesh->figures.sram_bytes ? 0 : (uint32_t)(pe->sram[address] | pe->sram[address + 1] << 8);
}

static void on_instruction(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core;
    pe->site = (uint32_t)address;
    const uint32_t first = halfword(pe, pe->site);
    if (first == SEV || (size == 4 && first == WIDE_HINT && halfword(pe, pe->site + 2) == WIDE_SEV)) {
        pe->event = true;
    }
}

static void stop_before_block(struct pe *pe, enum stop reason)
{
    pe->stop = reason;
    pe->mesh->unicorn->emu_stop(pe->core);
}

static bool instrumented(const struct pe *pe, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < pe->instrumented_count; i++) {
        if (pe->instrumented[i].from <= from && to <= pe->instrumented[i].to) {
            return true;
        }
    }
    return false;
}

static void learn(struct pe *pe, struct block *block, uint32_t address, uint32_t size)
{
    struct image *image = pe->image;
    free(block->progress);
    block->progress = calloc(size / 2 + 1, sizeof *block->progress);
    const int sends_event = pe->mesh->decode(pe->sram + address, size, address, block->progress);
    block->whole = block->progress[size / 2];
    block->size = (uint16_t)size;
    block->key = sends_event ? 0 : (uint16_t)size;
    image->code_low = address < image->code_low ? address : image->code_low;
    image->code_high = address + size > image->code_high ? address + size : image->code_high;
}

static void enter(struct pe *pe, struct block *block, uint32_t address)
{
    pe->cycles += address == pe->expected ? 0 : pe->mesh->figures.refill_cycles;
    pe->block = block;
    pe->block_start = address;
    pe->block_cycles = pe->cycles;
    pe->block_instructions = pe->instructions;
    pe->cycles += block->whole.cycles;
    pe->instructions += block->whole.instructions;
    pe->expected = address + block->size;
    pe->site = NO_SITE;
}

/* Go on with a block that was left before one of its instructions, as if it had not been. */
static void enter_rest(struct pe *pe, uint32_t address)
{
    const struct progress *done = &pe->block->progress[(address - pe->block_start) / 2];
    pe->block_cycles = pe->cycles - done->cycles;
    pe->cycles = pe->block_cycles + pe->block->whole.cycles;
    pe->instructions += (uint64_t)(pe->block->whole.instructions - done->instructions);
    pe->expected = pe->block_start + pe->block->size;
    pe->site = NO_SITE;
}

static void look_closer(struct pe *pe, uint32_t address, uint32_t size)
{
    if (address + size > pe->mesh->figures.sram_bytes) {
        pe_fault(pe, FAULT_FETCH, address);
        return;
    }
    if (pe->resumes && address == pe->expected && address + size == pe->block_start + pe->block->size) {
        pe->resumes = false;
        enter_rest(pe, address);
        return;
    }
    pe->resumes = false;
    struct block *block = &pe->image->blocks[address / 2];
    if (block->size != size) {
        learn(pe, block, address, size);
    }
    if (block->key == 0 && !instrumented(pe, address, address + size)) {
        pe->block_start = address;
        pe->block = block;
        stop_before_block(pe, STOP_INSTRUMENT_BLOCK);
        return;
    }
    enter(pe, block, address);
}

static void on_block(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core;
    if (pe->cycles >= pe->limit) {
        if (pe->cycles >= pe->slice_end) {
            stop_before_block(pe, STOP_LIMIT);
            return;
        }
        pe->limit = pe->slice_end;
        look_closer(pe, (uint32_t)address, size);
        return;
    }
    const uint64_t place = address / 2;
    struct block *block = &pe->image->blocks[place < pe->mesh->figures.sram_bytes / 2 ? place : 0];
    if (block->key != size) {
        look_closer(pe, (uint32_t)address, size);
        return;
    }
    enter(pe, block, (uint32_t)address);
}

const char *blocks_watch(struct pe *pe)
{
    uc_hook hook;
    const uc_err error = pe->mesh->unicorn->hook_add(pe->core, &hook, UC_HOOK_BLOCK, (void *)on_block, pe, 1, 0);
    return error == UC_ERR_OK ? NULL : "Unicorn takes no block hook";
}

/* The core stopped inside its block, before the instruction at `pc`. */
void blocks_rewind(struct pe *pe, uint32_t pc)
{
    const struct progress *done = &pe->block->progress[(pc - pe->block_start) / 2];
    pe->cycles = pe->block_cycles + done->cycles;
    pe->instructions = pe->block_instructions + done->instructions;
    pe->expected = pc;
    pe->resumes = true;
    pe->limit = 0; /* so that the block hook looks closer */
}

void blocks_instrument(struct pe *pe)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const struct code_range range = {pe->block_start, pe->block_start + pe->block->size};
    uc_hook hook;
    unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_instruction, pe, range.from, range.to - 1);
    unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)range.from, (uint64_t)range.to);
    pe->instrumented = grow(pe->instrumented, &pe->instrumented_room, pe->instrumented_count + 1, sizeof range);
    pe->instrumented[pe->instrumented_count++] = range;
}

/* Whether `site` can be trusted: every instruction of the block that runs is instrumented. */
bool blocks_site_known(struct pe *pe)
{
    if (pe->site == NO_SITE) {
        return false;
    }
    if (pe->checked_start == pe->block_start && pe->checked_size == pe->block->size) {
        return true;
    }
    if (!instrumented(pe, pe->block_start, pe->block_start + pe->block->size)) {
        return false;
    }
    pe->checked_start = pe->block_start;
    pe->checked_size = pe->block->size;
    return true;
}

/* The cycle in which the instruction that runs starts. */
uint64_t blocks_time(const struct pe *pe)
{
    return pe->block_cycles + pe->block->progress[(pe->site - pe->block_start) / 2].cycles;
}

/* Instructions retired before the one that runs. */
uint64_t blocks_instructions(const struct pe *pe)
{
    return pe->block_instructions + pe->block->progress[(pe->site - pe->block_start) / 2].instructions;
}

/* Memory was changed from outside the core: forget code that may have lain there. */
void blocks_forget(struct pe *pe, uint32_t from, uint32_t to)
{
    struct image *image = pe->image;
    if (image == NULL || to <= image->code_low || from >= image->code_high || from >= to) {
        return;
    }
    const uint32_t first = from / 2 > BLOCK_HALFWORDS ? from / 2 - BLOCK_HALFWORDS : 0;
    for (uint32_t place = first; place < (to + 1) / 2; place++) {
        image->blocks[place].key = 0;
        image->blocks[place].size = 0;
    }
    pe->mesh->unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)from, (uint64_t)to);
}
