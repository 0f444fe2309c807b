/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Bytes of SRAM written since power-on. A strict board checks every load and store: a read of unwritten bytes is a
 * fault. Their contents are random on every board. */
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "need.h"

/* Watch all SRAM. Call before PEs are powered up. */
void shadow_create(struct mesh *mesh)
{
    const size_t bytes = mesh->figures.sram_bytes;
    uint8_t *written = needed(calloc(mesh->pe_count, bytes));
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        mesh->pes[i].written = written + i * bytes;
    }
}

void shadow_written(const struct pe *pe, uint32_t address, size_t bytes)
{
    if (pe->written != NULL) {
        memset(pe->written + place_of(pe, address), 1, bytes);
    }
}

/* Activations are exempt. A batch also computes frames that it was not given, and the digest of a layer made in pieces
 * reads parts not computed yet. Errors there show in the outputs. */
static bool in_arena(const struct pe *pe, uint32_t address)
{
    return pe->image != NULL && pe->image->arena_from <= address && address < pe->image->arena_to;
}

/* Whether all these bytes have been written. */
bool shadow_is_written(const struct pe *pe, uint32_t address, size_t bytes)
{
    return pe->written == NULL || in_arena(pe, address) || memchr(pe->written + place_of(pe, address), 0, bytes) == NULL;
}

/* The other PE begins with a copy of the first PE's memory. */
void shadow_share(const struct pe *first, const struct pe *other)
{
    if (first->written != NULL && first != other) {
        memcpy(other->written, first->written, first->mesh->figures.sram_bytes);
    }
}

/* Clear the IT state. Unicorn saves the state before calling a hook, and would apply it to the next block. */
void shadow_leave_it_block(struct pe *pe)
{
    uint32_t psr = pe->block->has_conditions ? pe_register(pe, UC_ARM_REG_XPSR) : 0;
    if ((psr & IT_STATE) != 0) {
        psr &= ~IT_STATE;
        pe->mesh->unicorn->reg_write(pe->core, UC_ARM_REG_XPSR, &psr);
    }
}

static void on_load(uc_engine *core, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
    struct pe *pe = user;
    (void)core, (void)type, (void)value;
    if (!shadow_is_written(pe, (uint32_t)address, (size_t)size)) {
        pe_fault_at(pe, FAULT_UNWRITTEN, (uint32_t)address, pe_counter(pe));
    }
    if (pe->races != NULL) {
        races_load(pe, (uint32_t)address, (uint32_t)size);
    }
    shadow_leave_it_block(pe);
}

static void on_store(uc_engine *core, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
    struct pe *pe = user;
    const uint32_t from = (uint32_t)address, to = from + (uint32_t)size;
    (void)core, (void)type, (void)value;
    if (watch_is_code(pe->mesh, pe->number, from, to)) {
        pe_fault_at(pe, FAULT_OWN_CODE, from, pe_counter(pe));
        return;
    }
    shadow_written(pe, from, (size_t)size);
    if (pe->races != NULL) {
        races_store(pe, from, (uint32_t)size);
    }
    shadow_leave_it_block(pe);
}

static bool watch_memory(struct pe *pe, uint64_t from, uint32_t bytes)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const uint64_t last = from + bytes - 1;
    uc_hook hook;
    return unicorn->hook_add(pe->core, &hook, UC_HOOK_MEM_READ, (void *)on_load, pe, from, last) == UC_ERR_OK &&
           unicorn->hook_add(pe->core, &hook, UC_HOOK_MEM_WRITE, (void *)on_store, pe, from, last) == UC_ERR_OK;
}

bool shadow_watch(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    bool watched = true;
    for (uint32_t i = 0; i < figures->memory_count && pe->written != NULL; i++) {
        watched = watched && watch_memory(pe, pe->memory_bases[i], pe->memory_bytes[i]);
    }
    return watched;
}
