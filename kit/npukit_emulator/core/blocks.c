/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Counts of instructions and cycles: each block adds its cost when it starts, from a table filled once.
 *
 * A register access happens in the middle of a block, and Unicorn does not report the instruction. Therefore a block
 * with register accesses is instrumented: a hook runs before each instruction. The first register access reveals such a
 * block and is undone: the core stops before the instruction, and the counts are wound back. */
#include <stdlib.h>
#include <string.h>

#ifndef _WIN32
#include <pthread.h>
#endif

#include "mesh.h"
#include "need.h"

struct block unknown_block = {.carries = 1};

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
    if (pe->watched && !watch_instruction(pe)) {
        return;
    }
    if ((remarks & SENDS_EVENT) != 0) {
        pe->event = true;
    }
    if (pe->alone && (remarks & BEFORE_ACCESS) != 0) {
        stop_core(pe, STOP_WAIT_FOR_OTHERS); /* the access may concern other PEs */
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

static bool has_remarks(const struct block *block, uint32_t wanted)
{
    uint32_t remarks = 0;
    for (uint32_t i = 0; i < block->size / 2U; i++) {
        remarks |= block->progress[i].remarks;
    }
    return (remarks & wanted) != 0;
}

/* Whether a store to memory may be pending (no DSB since) behind the first `halfwords` of a block. `stored`: whether a
 * store was pending when the block began. */
static bool stored_before(const struct block *block, uint32_t halfwords, bool stored)
{
    for (uint32_t i = 0; i < halfwords; i++) {
        const uint32_t remarks = block->progress[i].remarks;
        if ((remarks & BARRIER) != 0) {
            stored = false;
        } else if ((remarks & (STORES | TO_REGISTERS)) == STORES) {
            stored = true;
        }
    }
    return stored;
}

static void sum_up_stores(struct block *block)
{
    block->stores = stored_before(block, block->size / 2U, false);
    block->carries = !has_remarks(block, BARRIER);
}

/* Set the sizes for which a run of the block needs no closer look. */
static void set_keys(struct block *block)
{
    const struct joint *joint = &block->joint;
    const bool often = block->watched || block->has_words || block->calls || joint->stack_bytes > 0;
    const bool always = often || joint->need_count > 0;
    block->keys[1] = always ? 0 : block->size;
    block->keys[0] = always || joint->fpu_at != 0 ? 0 : block->size;
    block->again = often || !joint->keeps_needs ? 0 : block->size;
}

/* Whether the core is under an IT instruction. Unicorn may cut long code there, too. */
static bool is_under_it(const struct pe *pe)
{
    return !pe->riscv && (pe_register(pe, UC_ARM_REG_XPSR) & IT_STATE) != 0;
}

static struct block *learn_locked(const struct pe *pe, uint32_t address, uint32_t size)
{
    struct image *image = pe->image;
    struct block *block = needed(calloc(1, sizeof *block + (size / 2 + 1) * sizeof block->progress[0]));
    block->before = image->learnt;
    image->learnt = block;
    pe->decode(pe->sram + (address - pe->code_base), size, address, block->progress, &block->joint);
    block->whole = block->progress[size / 2];
    block->size = (uint16_t)size;
    block->watched = has_remarks(block, SENDS_EVENT | BEFORE_ACCESS);
    block->has_words = has_remarks(block, NEEDS_WORDS);
    block->has_conditions = has_remarks(block, CONDITIONAL) || is_under_it(pe);
    block->calls = calls_at(pe, address);
    sum_up_stores(block);
    set_keys(block);
    image->code_low = address < image->code_low ? address : image->code_low;
    image->code_high = address + size > image->code_high ? address + size : image->code_high;
    __atomic_store_n(&image->blocks[(address - pe->code_base) / 2], block, __ATOMIC_RELEASE); /* another PE may still run the old block */
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

/* Learn a block. The lock protects an image shared by PEs side by side. */
static struct block *learn(const struct pe *pe, uint32_t address, uint32_t size)
{
    lock();
    struct block *known = pe->image->blocks[(address - pe->code_base) / 2];
    struct block *block = known->size == size ? known : learn_locked(pe, address, size);
    unlock();
    return block;
}

/* Give the PE its own copy of the image, because the PE's code differs from the other PEs' code. */
static void part_from_others(struct pe *pe)
{
    lock();
    struct image *shared = pe->image;
    const struct code_range code = {shared->code_from, shared->code_to}, arena = {shared->arena_from, shared->arena_to};
    struct image *own = mesh_add_image(pe->mesh, shared->stack_bottom, code, arena);
    memcpy(own->blocks, shared->blocks, pe->block_places * sizeof *own->blocks);
    calls_copy(pe->mesh, shared, own);
    own->code_low = shared->code_low;
    own->code_high = shared->code_high;
    own->pe_count = 1;
    shared->pe_count--;
    pe->image = own;
    pe->blocks = own->blocks;
    unlock();
}

/* Whether a block's first load or store is pipelined behind the block before. Unicorn cuts long code at borders of its
 * own. */
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
    if (pe->fetches != NULL) {
        pe->cycles += waits_fetch(pe->fetches, address, block->size);
    }
    pe->expected = address + block->size;
    pe->unordered = (pe->unordered & pe->block->carries) | pe->block->stores;
    pe->block = block;
}

/* Cycles of the running block from an instruction on. */
static uint64_t rest_cycles(const struct pe *pe, const struct progress *done)
{
    return (uint64_t)(pe->block->whole.cycles - done->cycles) - (done->cycles == 0 && pe->joined ? 1U : 0U);
}

/* Continue a block that was left before an instruction: count only the rest. */
static void enter_rest(struct pe *pe, uint32_t address, uint32_t size)
{
    pe->expected = address + size;
    const struct progress *done = progress_at(pe, address);
    pe->cycles += rest_cycles(pe, done);
    pe->instructions += (uint64_t)(pe->block->whole.instructions - done->instructions);
}

/* ---- accesses checked at each execution: a hook for each, because most blocks have none ---- */

static void on_words(uc_engine *core, uint64_t address, uint32_t size, void *user)
{
    struct pe *pe = user;
    (void)core, (void)size;
    const uint32_t remarks = pe->stop == STOP_NONE ? progress_at(pe, (uint32_t)address)->remarks : 0;
    if ((remarks & NEEDS_WORDS) != 0) { /* the access may have been checked at the start of another block */
        watch_words(pe, remarks, (uint32_t)address);
    }
}

static bool hook_at(struct pe *pe, uint32_t address)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    uint8_t *byte = &pe->word_hooks[(address - pe->code_base) / 16];
    const uint8_t bit = (uint8_t)(1U << address / 2 % 8);
    uc_hook hook;
    if ((*byte & bit) != 0) {
        return false;
    }
    *byte |= bit;
    unicorn->hook_add(pe->core, &hook, UC_HOOK_CODE, (void *)on_words, pe, address, address);
    return true;
}

/* Hook the NEEDS_WORDS accesses of a block. True if the block must be translated again. */
static bool hook_words(struct pe *pe, const struct block *block, uint32_t address)
{
    bool added = false;
    if (pe->word_hooks == NULL) {
        pe->word_hooks = needed(calloc(pe->mesh->figures.code_bytes / 16, 1));
    }
    for (uint32_t at = 0; at < block->size; at += 2) {
        if ((block->progress[at / 2].remarks & NEEDS_WORDS) != 0) {
            added = hook_at(pe, address + at) || added;
        }
    }
    if (added) {
        pe->mesh->unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)address,
                               (uint64_t)address + block->size);
    }
    return added;
}

static void look_closer(struct pe *pe, uint32_t address, uint32_t size)
{
    if ((uint64_t)(address - pe->code_base) + size > pe->mesh->figures.code_bytes) {
        pe_fault(pe, FAULT_FETCH, address);
        return;
    }
    if (pe->resumes) {
        pe->resumes = false;
        if (address + size == pe->resumed_end) {
            enter_rest(pe, address, size);
            return;
        }
        pe->block = &unknown_block; /* longer than the rest was: count it as a separate block */
    }
    struct block *block = pe->blocks[(address - pe->code_base) / 2];
    if (block->size != size) {
        const struct image *image = pe->image;
        if (image->pe_count > 1 && (address < image->code_from || address + size > image->code_to)) {
            part_from_others(pe); /* PEs share only the program itself */
        }
        block = learn(pe, address, size);
    }
    if (block->watched && !instrumented(pe, address, address + size)) {
        blocks_instrument(pe, address, address + size);
        stop_core(pe, STOP_AND_GO_ON);
    } else if (block->has_words && hook_words(pe, block, address)) {
        stop_core(pe, STOP_AND_GO_ON);
    } else if (watch_block(pe, block, address) && (!block->calls || calls_look(pe, address))) {
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
        system_tick(pe, pe->cycles);
        if (exceptions_due(pe) && !is_under_it(pe)) {
            stop_core(pe, STOP_EXCEPTION);
            return;
        }
        pe->limit = exceptions_limit(pe);
        look_closer(pe, (uint32_t)address, size);
        return;
    }
    const uint32_t place = ((uint32_t)address - pe->code_base) / 2;
    struct block *block = pe->blocks[place < pe->block_places ? place : 0];
    if (block->keys[pe->fpu] != size && (block != pe->block || block->again != size)) {
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

/* Take a closer look at each run of the block at an address. */
void blocks_look_closer(struct pe *pe, uint32_t address)
{
    lock();
    struct block *block = pe->blocks[(address - pe->code_base) / 2];
    if (block != &unknown_block) {
        block->calls = true;
        set_keys(block);
    }
    unlock();
}

/* Continue at `pc`. */
void blocks_jump(struct pe *pe, uint32_t pc)
{
    pe->pc = pc;
    pe->expected = pc;
    pe->resumes = false;
    pe->block = &unknown_block;
}

/* Whether a store to memory may be pending before the next block, or before the rest of a block left earlier. */
bool blocks_stored(const struct pe *pe)
{
    const struct block *block = pe->block;
    const uint32_t left = pe->resumes ? pe->resumed_end - pe->pc : 0;
    return stored_before(block, (block->size - left) / 2, pe->unordered != 0);
}

/* Wind the counts back: the core stopped inside the block, before the instruction at `pc`. False if `pc` lies outside
 * the block: the core has continued without the access, as Unicorn does under an IT instruction that the decoder does
 * not recognise. */
bool blocks_rewind(struct pe *pe, uint32_t pc)
{
    if (pc - block_start(pe) >= pe->block->size) {
        pe_fault_at(pe, FAULT_OTHER, pc, pc);
        return false;
    }
    const struct progress *done = progress_at(pe, pc);
    pe->cycles -= rest_cycles(pe, done);
    pe->instructions -= (uint64_t)(pe->block->whole.instructions - done->instructions);
    pe->resumed_end = pe->expected;
    pe->expected = pc;
    pe->resumes = true;
    pe->limit = 0; /* makes the block hook look closer */
    return true;
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

/* Instrument the block in which the counts were wound back. */
void blocks_instrument_left(struct pe *pe)
{
    blocks_instrument(pe, pe->resumed_end - pe->block->size, pe->resumed_end);
}

/* Whether `site` is the running instruction. True in instrumented blocks. */
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

/* The cycle in which an instruction of the running block starts. */
uint64_t blocks_time_at(const struct pe *pe, uint32_t address)
{
    return pe->cycles - rest_cycles(pe, progress_at(pe, address));
}

/* The cycle in which the running instruction starts. */
uint64_t blocks_time(const struct pe *pe)
{
    return blocks_time_at(pe, pe->site);
}

/* Instructions retired before the running instruction. */
uint64_t blocks_instructions(const struct pe *pe)
{
    return pe->instructions - pe->block->whole.instructions + progress_at(pe, pe->site)->instructions;
}

/* Whether the running instruction is under an IT instruction. */
bool blocks_site_conditional(const struct pe *pe)
{
    return (progress_at(pe, pe->site)->remarks & CONDITIONAL) != 0;
}

/* Whether a store to memory may be pending at the running instruction: no DSB between. */
bool blocks_stored_before_site(const struct pe *pe)
{
    return stored_before(pe->block, (pe->site - block_start(pe)) / 2, pe->unordered != 0);
}

/* Note a store to a register by the running instruction. Stores to registers stay in program order without a
 * barrier. */
void blocks_site_stores_to_registers(struct pe *pe)
{
    struct progress *here = progress_at(pe, pe->site);
    if ((here->remarks & TO_REGISTERS) == 0) {
        here->remarks |= TO_REGISTERS;
        sum_up_stores(pe->block);
    }
}

/* Note a register access by the running conditional instruction, at the last IT instruction before. */
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

/* Forget code in memory changed from outside the core. */
void blocks_forget(struct pe *pe, uint32_t from, uint32_t to)
{
    struct image *image = pe->image;
    if (image != NULL && image->pe_count > 1 && pe->state != PE_ABSENT && from < image->code_to && to > image->code_from) {
        part_from_others(pe);
        image = pe->image;
    }
    if (image == NULL || to <= image->code_low || from >= image->code_high || from >= to) {
        return;
    }
    const uint32_t first = (from - pe->code_base) / 2, last = (to - pe->code_base + 1) / 2;
    for (uint32_t place = first > BLOCK_HALFWORDS ? first - BLOCK_HALFWORDS : 0; place < last; place++) {
        image->blocks[place] = &unknown_block;
    }
    pe->mesh->unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TB_REMOVE_CACHE, 2), (uint64_t)from, (uint64_t)to);
}
