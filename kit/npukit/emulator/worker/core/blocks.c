/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Counting: every block of instructions adds what it costs as it starts, from a table that is filled once.
 *
 * A register access happens in the middle of a block, and Unicorn does not say where. So a block that was seen to
 * access registers is instrumented: from then on each of its instructions says that it is next. The access that showed
 * it is undone first: the core stops before that instruction, and the count is wound back to it. */
#include <stdlib.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "mesh.h"

struct block unknown_block;

static uint32_t block_start(const struct pe *pe)
{
    return pe->expected - pe->block->size;
}

static struct progress *progress_at(const struct pe *pe, uint32_t address)
{
    return &pe->block->progress[(address - block_start(pe)) / 2];
}

static void stop_core(struct pe *pe, enum stop reason)
{
    pe->stop = reason;
    pe->mesh->unicorn->emu_stop(pe->core);
}

static void on_instruction(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core, (void)size;
    if (pe->stop != STOP_NONE) {
        return;
    }
    pe->site = (uint32_t)address;
    const uint32_t remarks = progress_at(pe, pe->site)->remarks;
    if (pe->watched && !watch_instruction(pe, remarks)) {
        return;
    }
    if ((remarks & SENDS_EVENT) != 0) {
        pe->event = true;
    }
    if (pe->alone && (remarks & BEFORE_ACCESS) != 0) {
        stop_core(pe, STOP_WAIT_FOR_OTHERS); /* who knows what it accesses */
    } else if ((remarks & BEFORE_REGISTERS) != 0) {
        bus_meet_the_others(pe);
    }
}

static bool instrumented(const struct pe *pe, uint32_t from, uint32_t to)
{
    if (pe->watched) {
        return true;
    }
    for (size_t i = 0; i < pe->instrumented_count; i++) {
        if (pe->instrumented[i].from <= from && to <= pe->instrumented[i].to) {
            return true;
        }
    }
    return false;
}

static bool has_remarks(const struct block *block)
{
    uint32_t remarks = 0;
    for (uint32_t i = 0; i < block->size / 2U; i++) {
        remarks |= block->progress[i].remarks;
    }
    return (remarks & (SENDS_EVENT | BEFORE_ACCESS)) != 0;
}

static struct block *learn_locked(const struct pe *pe, uint32_t address, uint32_t size)
{
    struct image *image = pe->image;
    struct block *block = calloc(1, sizeof *block + (size / 2 + 1) * sizeof block->progress[0]);
    pe->mesh->decode(pe->sram + address, size, address, block->progress, &block->joint);
    block->whole = block->progress[size / 2];
    block->size = (uint16_t)size;
    block->watched = has_remarks(block);
    block->key = block->watched || block->joint.stack_bytes > 0 ? 0 : (uint16_t)size;
    image->code_low = address < image->code_low ? address : image->code_low;
    image->code_high = address + size > image->code_high ? address + size : image->code_high;
    __atomic_store_n(&image->blocks[address / 2], block, __ATOMIC_RELEASE); /* the one before may still be run by another PE: it is kept */
    return block;
}

#ifdef _WIN32
static void lock(void) {}
static void unlock(void) {}
#else
static pthread_mutex_t learning = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&learning);
}

static void unlock(void)
{
    pthread_mutex_unlock(&learning);
}
#endif

/* PEs that run side by side may share the image. */
static struct block *learn(const struct pe *pe, uint32_t address, uint32_t size)
{
    lock();
    struct block *known = pe->image->blocks[address / 2];
    struct block *block = known->size == size ? known : learn_locked(pe, address, size);
    unlock();
    return block;
}

/* Unicorn cuts long code at its own borders: whether a load or store there is pipelined behind the load before. */
static bool joins(const struct block *before, const struct block *block)
{
    return before->joint.loaded != 0 && block->joint.can_follow != 0 &&
        (before->joint.loaded & block->joint.address) == 0;
}

static void enter(struct pe *pe, struct block *block, uint32_t address)
{
    const bool follows = address == pe->expected;
    pe->joined = follows && joins(pe->block, block);
    pe->cycles += block->whole.cycles + (follows ? 0 : pe->refill_cycles) - (pe->joined ? 1U : 0U);
    pe->instructions += block->whole.instructions;
    pe->expected = address + block->size;
    pe->block = block;
}

/* Go on with a block that was left before one of its instructions, as if it had not been. */
static void enter_rest(struct pe *pe, uint32_t address, uint32_t size)
{
    pe->expected = address + size;
    const struct progress *done = progress_at(pe, address);
    pe->cycles += (uint64_t)(pe->block->whole.cycles - done->cycles);
    pe->instructions += (uint64_t)(pe->block->whole.instructions - done->instructions);
}

static void look_closer(struct pe *pe, uint32_t address, uint32_t size)
{
    if ((uint64_t)address + size > pe->mesh->figures.sram_bytes) {
        pe_fault(pe, FAULT_FETCH, address);
        return;
    }
    if (pe->resumes) {
        pe->resumes = false;
        if (address + size == pe->resumed_end) {
            enter_rest(pe, address, size);
            return;
        }
        pe->block = &unknown_block; /* the rest became longer than it was: count it as a block of its own */
    }
    struct block *block = pe->blocks[address / 2];
    if (block->size != size) {
        block = learn(pe, address, size);
    }
    if (block->watched && !instrumented(pe, address, address + size)) {
        blocks_instrument(pe, address, address + size);
        stop_core(pe, STOP_AND_GO_ON);
        return;
    }
    if (watch_stack(pe, block, address)) {
        enter(pe, block, address);
    }
}

static void on_block(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core;
    if (pe->cycles >= pe->limit) {
        if (pe->cycles >= pe->slice_end) {
            stop_core(pe, STOP_LIMIT);
            return;
        }
        pe->limit = pe->slice_end;
        look_closer(pe, (uint32_t)address, size);
        return;
    }
    const uint64_t place = address / 2;
    struct block *block = pe->blocks[place < pe->block_places ? place : 0];
    if (block->key != size) {
        look_closer(pe, (uint32_t)address, size);
        return;
    }
    enter(pe, block, (uint32_t)address);
}

const char *blocks_watch(struct pe *pe)
{
    uc_hook hook;
    const struct unicorn *unicorn = pe->mesh->unicorn;
    bool done = unicorn->hook_add(pe->core, &hook, UC_HOOK_BLOCK, (void *)on_block, pe, 1, 0) == UC_ERR_OK;
    if (pe->watched) {
        done = done && unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_instruction, pe, 1, 0) == UC_ERR_OK;
    }
    return done ? NULL : "Unicorn takes no hook";
}

/* The core goes on elsewhere. */
void blocks_jump(struct pe *pe, uint32_t pc)
{
    pe->pc = pc;
    pe->expected = pc;
    pe->resumes = false;
    pe->block = &unknown_block;
}

/* The core stopped inside its block, before the instruction at `pc`. */
void blocks_rewind(struct pe *pe, uint32_t pc)
{
    const struct progress *done = progress_at(pe, pc);
    pe->cycles -= (uint64_t)(pe->block->whole.cycles - done->cycles);
    pe->instructions -= (uint64_t)(pe->block->whole.instructions - done->instructions);
    pe->resumed_end = pe->expected;
    pe->expected = pc;
    pe->resumes = true;
    pe->limit = 0; /* so that the block hook looks closer */
}

void blocks_instrument(struct pe *pe, uint32_t from, uint32_t to)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const struct code_range range = {from, to};
    uc_hook hook;
    unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_instruction, pe, from, to - 1);
    unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)from, (uint64_t)to);
    pe->instrumented = grow(pe->instrumented, &pe->instrumented_room, pe->instrumented_count + 1, sizeof range);
    pe->instrumented[pe->instrumented_count++] = range;
}

/* Instrument the block that the core has been wound back in. */
void blocks_instrument_left(struct pe *pe)
{
    blocks_instrument(pe, pe->resumed_end - pe->block->size, pe->resumed_end);
}

/* Whether `site` is the instruction that runs: every instruction of its block says so. */
bool blocks_site_known(struct pe *pe)
{
    if (pe->site == NO_SITE) {
        return false;
    }
    if (pe->checked == pe->block && pe->checked_end == pe->expected) {
        return true;
    }
    if (!instrumented(pe, block_start(pe), pe->expected)) {
        return false;
    }
    pe->checked = pe->block;
    pe->checked_end = pe->expected;
    return true;
}

/* The cycle in which an instruction of the block that runs starts. */
uint64_t blocks_time_at(const struct pe *pe, uint32_t address)
{
    const uint64_t start = pe->cycles - pe->block->whole.cycles;
    const uint32_t done = progress_at(pe, address)->cycles;
    return start + done + (done == 0 && pe->joined ? 1 : 0);
}

/* The cycle in which the instruction that runs starts. */
uint64_t blocks_time(const struct pe *pe)
{
    return blocks_time_at(pe, pe->site);
}

/* Instructions retired before the one that runs. */
uint64_t blocks_instructions(const struct pe *pe)
{
    return pe->instructions - pe->block->whole.instructions + progress_at(pe, pe->site)->instructions;
}

/* Whether the instruction that runs is under an IT instruction. */
bool blocks_site_conditional(const struct pe *pe)
{
    return (progress_at(pe, pe->site)->remarks & CONDITIONAL) != 0;
}

/* The conditional instruction that runs accesses registers: its IT instruction is the last one before it. */
void blocks_remember_registers(struct pe *pe)
{
    for (uint32_t at = pe->site; at > block_start(pe); at -= 2) {
        struct progress *before = progress_at(pe, at - 2);
        if ((before->remarks & BEFORE_ACCESS) != 0) {
            before->remarks |= BEFORE_REGISTERS;
            return;
        }
    }
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
        image->blocks[place] = &unknown_block;
    }
    pe->mesh->unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)from, (uint64_t)to);
}
