/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Registers that a function must preserve: the stack pointer, and the callee-saved registers of the procedure call
 * standard. The values are recorded at a function's entry and compared at the return address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "need.h"

enum { ENTRY = 1, RETURN = 2 }; /* in the image's `calls`, one byte per halfword of code */
enum { MOST_CALLS = 32, MOST_KEPT = 28, KEPT_OF_ARM = 8, KEPT_OF_FPU = 16 };

/* A call that has not returned: entry, return address, preserved registers. */
struct call {
    uint32_t entry, back, stack_pointer, count;
    uint32_t kept[MOST_KEPT];
};

struct calls {
    uint32_t count;
    struct call call[MOST_CALLS];
};

/* Numbers of s0-s11. */
static const int kept_of_riscv[] = {8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27};

static uint32_t kept_count(const struct pe *pe)
{
    return pe->riscv ? 12 : KEPT_OF_ARM + (pe->fpu != 0 ? KEPT_OF_FPU : 0U);
}

static int kept_register(const struct pe *pe, uint32_t which)
{
    if (pe->riscv) {
        return UC_RISCV_REG_X0 + kept_of_riscv[which];
    }
    return which < KEPT_OF_ARM ? UC_ARM_REG_R4 + (int)which : UC_ARM_REG_S16 + (int)which - KEPT_OF_ARM;
}

static void name_register(const struct pe *pe, uint32_t which, char *name, size_t room)
{
    if (pe->riscv) {
        snprintf(name, room, "s%u", which);
    } else if (which < KEPT_OF_ARM) {
        snprintf(name, room, "r%u", 4 + which);
    } else {
        snprintf(name, room, "s%u", 16 + which - KEPT_OF_ARM);
    }
}

static void fault_of(struct pe *pe, const struct call *call, const char *name)
{
    snprintf(pe->changed, sizeof pe->changed, "%s", name);
    pe_fault_at(pe, FAULT_CHANGED, call->entry, call->back);
}

/* ---- record and comparison ---- */

/* Drop calls with frames below the stack pointer, which have been left. */
static void drop_left(struct calls *calls, uint32_t stack_pointer)
{
    while (calls->count > 0 && calls->call[calls->count - 1].stack_pointer < stack_pointer) {
        calls->count--;
    }
}

static struct call *last_call(struct calls *calls)
{
    return calls->count > 0 ? &calls->call[calls->count - 1] : NULL;
}

static struct call *new_call(struct calls *calls)
{
    if (calls->count == MOST_CALLS) {
        memmove(calls->call, calls->call + 1, (MOST_CALLS - 1) * sizeof calls->call[0]);
        calls->count--;
    }
    return &calls->call[calls->count++];
}

static bool comes_back(struct pe *pe, uint32_t address)
{
    const struct call *call = pe->calls != NULL ? last_call(pe->calls) : NULL;
    char name[8];
    if (call == NULL || call->back != address) {
        return true;
    }
    pe->calls->count--;
    if (pe_stack_pointer(pe) != call->stack_pointer) {
        fault_of(pe, call, "sp");
        return false;
    }
    for (uint32_t i = 0; i < call->count; i++) {
        if (pe_register(pe, kept_register(pe, i)) != call->kept[i]) {
            name_register(pe, i, name, sizeof name);
            fault_of(pe, call, name);
            return false;
        }
    }
    return true;
}

/* Mark a return address: registers are compared at each run of the block there. */
static void mark_return(struct pe *pe, uint32_t address)
{
    uint8_t *mark = &pe->image->calls[(address - pe->code_base) / 2];
    if ((*mark & RETURN) == 0) {
        *mark |= RETURN;
        blocks_look_closer(pe, address);
    }
}

/* Record a call. A tail-called function returns for its caller, whose call is recorded already. */
static void begins(struct pe *pe, uint32_t address)
{
    const uint32_t back = pe_register(pe, pe->riscv ? UC_RISCV_REG_RA : UC_ARM_REG_LR) & ~1U;
    const uint32_t stack_pointer = pe_stack_pointer(pe);
    if (back < pe->image->code_from || back >= pe->image->code_to) {
        return; /* an exception handler, or a function that never returns */
    }
    pe->calls = pe->calls != NULL ? pe->calls : needed(calloc(1, sizeof *pe->calls));
    drop_left(pe->calls, stack_pointer);
    const struct call *last = last_call(pe->calls);
    if (last != NULL && last->back == back && last->stack_pointer == stack_pointer) {
        return;
    }
    struct call *call = new_call(pe->calls);
    *call = (struct call){address, back, stack_pointer, kept_count(pe), {0}};
    for (uint32_t i = 0; i < call->count; i++) {
        call->kept[i] = pe_register(pe, kept_register(pe, i));
    }
    mark_return(pe, back);
}

/* ---- for blocks.c ---- */

bool calls_at(const struct pe *pe, uint32_t address)
{
    return pe->image->calls != NULL && pe->image->calls[(address - pe->code_base) / 2] != 0;
}

/* Check a block at a function's entry or behind a call, before the block runs. False if the returning function is at
 * fault. */
bool calls_look(struct pe *pe, uint32_t address)
{
    const uint8_t mark = pe->image->calls[(address - pe->code_base) / 2];
    if ((mark & RETURN) != 0 && !comes_back(pe, address)) {
        return false;
    }
    if ((mark & ENTRY) != 0) {
        begins(pe, address);
    }
    return true;
}

/* Forget calls at an exception, because the handler may switch stacks. */
void calls_forget(struct pe *pe)
{
    if (pe->calls != NULL) {
        pe->calls->count = 0;
    }
}

void calls_watch(const struct pe *pe, struct image *image, const uint32_t *entries, uint32_t count)
{
    const uint32_t bytes = pe->mesh->figures.code_bytes;
    image->calls = needed(calloc(bytes / 2, 1));
    for (uint32_t i = 0; i < count; i++) {
        if (entries[i] - pe->code_base < bytes) {
            image->calls[(entries[i] - pe->code_base) / 2] |= ENTRY;
        }
    }
}

/* Copy the marks for a PE whose code diverges. */
void calls_copy(const struct mesh *mesh, const struct image *from, struct image *to)
{
    if (from->calls != NULL) {
        to->calls = needed(malloc(mesh->figures.code_bytes / 2));
        memcpy(to->calls, from->calls, mesh->figures.code_bytes / 2);
    }
}
