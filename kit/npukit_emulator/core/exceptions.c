/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Exceptions that interrupt the core: selection, entry and return. An exception is taken between blocks of
 * instructions. The fault exceptions of Armv7-M end the run instead: pe.c. */
#include "exceptions.h"

#include <string.h>

#include "mesh.h"

enum { ENTRY_CYCLES = 12, RETURN_CYCLES = 10, CHAINED_CYCLES = 6 };
enum { FRAME_WORDS = 8, FPU_FRAME_WORDS = 26, FPU_REGISTERS = 16 };
enum { LOWEST_PRIORITY = 256, NMI_PRIORITY = -2, FAULTMASK_PRIORITY = -1 };
enum { CONTROL_PROCESS_STACK = 2, CONTROL_FPU_ACTIVE = 4 };
enum { CONFIGURATION_STACK_ALIGN = 1 << 9, FRAME_WAS_ALIGNED = 1 << 9 };

#define RETURN_BASE 0xFFFFFFE1U /* to a handler, with an FPU frame */
enum { RETURN_NO_FPU = 1 << 4, RETURN_TO_THREAD = 1 << 3, RETURN_TO_PROCESS_STACK = 1 << 2 };

static uint64_t bit(uint32_t number)
{
    return (uint64_t)1 << number;
}

static void write_register(struct pe *pe, int name, uint32_t value)
{
    pe->mesh->unicorn->reg_write(pe->core, name, &value);
}

/* ---- selection ---- */

static int32_t priority_of(const struct exceptions *exceptions, uint32_t number)
{
    return number == NMI ? NMI_PRIORITY : exceptions->priority[number];
}

static int32_t group_of(const struct exceptions *exceptions, int32_t priority)
{
    const uint32_t subgroup = (2U << exceptions->priority_group) - 1;
    return priority < 0 ? priority : (int32_t)((uint32_t)priority & ~subgroup);
}

/* The pending and enabled exception of the highest priority, or NO_EXCEPTION. */
uint32_t exceptions_highest(const struct exceptions *exceptions)
{
    const uint64_t candidates = exceptions->pending & exceptions->enabled;
    uint32_t highest = NO_EXCEPTION;
    for (uint32_t number = NMI; candidates != 0 && number < EXCEPTIONS; number++) {
        const bool higher = highest == NO_EXCEPTION ||
                            priority_of(exceptions, number) < priority_of(exceptions, highest);
        highest = (candidates & bit(number)) != 0 && higher ? number : highest;
    }
    return highest;
}

static int32_t lower_of(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The execution priority. An exception preempts if the priority of its group is higher. */
static int32_t execution_priority(const struct pe *pe, bool with_primask)
{
    const struct exceptions *exceptions = &pe->exceptions;
    int32_t priority = LOWEST_PRIORITY;
    for (uint32_t number = NMI; exceptions->active != 0 && number < EXCEPTIONS; number++) {
        if ((exceptions->active & bit(number)) != 0) {
            priority = lower_of(priority, group_of(exceptions, priority_of(exceptions, number)));
        }
    }
    const uint32_t base = pe_register(pe, UC_ARM_REG_BASEPRI) & 0xFF;
    priority = base != 0 ? lower_of(priority, group_of(exceptions, (int32_t)base)) : priority;
    priority = with_primask && (pe_register(pe, UC_ARM_REG_PRIMASK) & 1) != 0 ? lower_of(priority, 0) : priority;
    return (pe_register(pe, UC_ARM_REG_FAULTMASK) & 1) != 0 ? lower_of(priority, FAULTMASK_PRIORITY) : priority;
}

static bool preempts(const struct pe *pe, bool with_primask)
{
    const uint32_t number = exceptions_highest(&pe->exceptions);
    return number != NO_EXCEPTION && group_of(&pe->exceptions, priority_of(&pe->exceptions, number)) <
                                         execution_priority(pe, with_primask);
}

/* Whether an exception is to be taken. */
bool exceptions_due(struct pe *pe)
{
    return (pe->exceptions.pending & pe->exceptions.enabled) != 0 && preempts(pe, true);
}

/* Whether an exception ends WFI. PRIMASK does not prevent it. */
bool exceptions_wake_wfi(struct pe *pe)
{
    return (pe->exceptions.pending & pe->exceptions.enabled) != 0 && preempts(pe, false);
}

bool exceptions_enabled(const struct pe *pe, uint32_t number)
{
    return (pe->exceptions.enabled & bit(number)) != 0;
}

void exceptions_pend(struct pe *pe, uint32_t number)
{
    pe->exceptions.pending |= bit(number);
    pe->limit = 0; /* makes the block hook check exceptions */
}

/* The cycle up to which the core may run without a check for exceptions. */
uint64_t exceptions_limit(struct pe *pe)
{
    const uint64_t tick = system_next_tick(pe);
    const bool waits = (pe->exceptions.pending & pe->exceptions.enabled) != 0;
    return waits ? 0 : tick < pe->slice_end ? tick : pe->slice_end;
}

/* ---- frames ---- */

static const int frame_registers[] = {UC_ARM_REG_R0, UC_ARM_REG_R1, UC_ARM_REG_R2,
                                      UC_ARM_REG_R3, UC_ARM_REG_R12, UC_ARM_REG_LR};
enum { FRAME_PC = 6, FRAME_PSR = 7, FRAME_FPU = 8, FRAME_FPSCR = 24 };

/* Whether a frame can lie at `address`. If not, the PE faults. */
static bool frame_fits(struct pe *pe, uint32_t address, uint32_t words, uint32_t kind)
{
    if (address % 4 == 0 && is_memory(pe, address, 4 * (uint64_t)words)) {
        return true;
    }
    pe_fault_at(pe, kind, address, pe->pc);
    return false;
}

static void read_fpu(const struct pe *pe, uint32_t *frame)
{
    for (int i = 0; i < FPU_REGISTERS; i++) {
        frame[FRAME_FPU + i] = pe_register(pe, UC_ARM_REG_S0 + i);
    }
    frame[FRAME_FPSCR] = pe_register(pe, UC_ARM_REG_FPSCR);
}

static void write_fpu(struct pe *pe, const uint32_t *frame)
{
    for (int i = 0; i < FPU_REGISTERS; i++) {
        write_register(pe, UC_ARM_REG_S0 + i, frame[FRAME_FPU + i]);
    }
    write_register(pe, UC_ARM_REG_FPSCR, frame[FRAME_FPSCR]);
}

/* Push the frame. Returns the exception's return code for the link register, or 0 if the PE faults. */
static uint32_t push_frame(struct pe *pe)
{
    const uint32_t control = pe_register(pe, UC_ARM_REG_CONTROL);
    const bool fpu = (control & CONTROL_FPU_ACTIVE) != 0;
    const uint32_t words = fpu ? FPU_FRAME_WORDS : FRAME_WORDS;
    const uint32_t pointer = pe_register(pe, UC_ARM_REG_SP);
    const bool aligns = fpu || (pe->exceptions.configuration & CONFIGURATION_STACK_ALIGN) != 0;
    const uint32_t address = (pointer - 4 * words) & (aligns ? ~7U : ~3U);
    uint32_t frame[FPU_FRAME_WORDS] = {0};
    const uint32_t bottom = pe->image->stack_bottom;
    if (bottom != 0 && pointer >= bottom && address < bottom) {
        pe_fault_at(pe, FAULT_STACK, address, pe->pc);
        return 0;
    }
    if (!frame_fits(pe, address, words, FAULT_WRITE)) {
        return 0;
    }
    for (int i = 0; i < FRAME_PC; i++) {
        frame[i] = pe_register(pe, frame_registers[i]);
    }
    const uint32_t was_aligned = aligns && (pointer & 4) != 0 ? (uint32_t)FRAME_WAS_ALIGNED : 0U;
    frame[FRAME_PC] = pe->pc;
    frame[FRAME_PSR] = (pe_register(pe, UC_ARM_REG_XPSR) & ~(uint32_t)FRAME_WAS_ALIGNED) | was_aligned;
    if (fpu) {
        read_fpu(pe, frame);
    }
    memcpy(pe->sram + place_of(pe, address), frame, 4 * words);
    shadow_written(pe, address, 4 * words);
    const uint32_t thread = pe->exceptions.active == 0 ? (uint32_t)RETURN_TO_THREAD : 0U;
    const uint32_t stack = (control & CONTROL_PROCESS_STACK) != 0 ? (uint32_t)RETURN_TO_PROCESS_STACK : 0U;
    write_register(pe, UC_ARM_REG_SP, address);
    write_register(pe, UC_ARM_REG_CONTROL, control & ~(uint32_t)(CONTROL_PROCESS_STACK | CONTROL_FPU_ACTIVE));
    return RETURN_BASE | thread | stack | (fpu ? 0U : (uint32_t)RETURN_NO_FPU);
}

static void pop_frame(struct pe *pe, uint32_t code, uint32_t address, const uint32_t *frame)
{
    const bool fpu = (code & RETURN_NO_FPU) == 0;
    const uint32_t control = pe_register(pe, UC_ARM_REG_CONTROL) & ~(uint32_t)CONTROL_FPU_ACTIVE;
    const uint32_t psr = frame[FRAME_PSR];
    const uint32_t after = address + 4 * (fpu ? (uint32_t)FPU_FRAME_WORDS : (uint32_t)FRAME_WORDS);
    for (int i = 0; i < FRAME_PC; i++) {
        write_register(pe, frame_registers[i], frame[i]);
    }
    if (fpu) {
        write_fpu(pe, frame);
    }
    write_register(pe, UC_ARM_REG_SP, after | ((psr & FRAME_WAS_ALIGNED) != 0 ? 4U : 0U));
    write_register(pe, UC_ARM_REG_CONTROL, control | (fpu ? (uint32_t)CONTROL_FPU_ACTIVE : 0U));
    write_register(pe, UC_ARM_REG_XPSR, psr & ~(uint32_t)FRAME_WAS_ALIGNED);
    write_register(pe, UC_ARM_REG_IPSR, psr & 0x1FF);
}

/* ---- entry and return ---- */

/* Enter the handler of the highest exception. False if the vector table has none: the PE faults. */
static bool enter_handler(struct pe *pe, uint32_t code, uint32_t cycles)
{
    struct exceptions *exceptions = &pe->exceptions;
    const uint32_t number = exceptions_highest(exceptions);
    const uint32_t vector = exceptions->vector_table + 4 * number;
    uint32_t handler = 0;
    if (is_memory(pe, vector, sizeof handler)) {
        memcpy(&handler, pe->sram + place_of(pe, vector), sizeof handler);
    }
    if ((handler & 1) == 0) {
        pe_fault_at(pe, FAULT_FETCH, handler, pe->pc);
        return false;
    }
    exceptions->pending &= ~bit(number);
    exceptions->active |= bit(number);
    write_register(pe, UC_ARM_REG_LR, code);
    write_register(pe, UC_ARM_REG_XPSR, pe_register(pe, UC_ARM_REG_XPSR) & ~IT_STATE);
    write_register(pe, UC_ARM_REG_IPSR, number);
    pe->event = true;
    pe->cycles += cycles;
    blocks_jump(pe, handler & ~1U);
    pe->unordered = 1;
    return true;
}

/* Take the exception that is due, between two blocks and behind an IT block. False if the PE faults. */
bool exceptions_take(struct pe *pe)
{
    const uint32_t code = push_frame(pe);
    calls_forget(pe);
    pe->unordered_before = pe->unordered_before << 1 | blocks_stored(pe);
    return code != 0 && enter_handler(pe, code, ENTRY_CYCLES);
}

static uint32_t current(const struct pe *pe)
{
    return pe_register(pe, UC_ARM_REG_IPSR) & 0x1FF;
}

/* Whether a return code is valid in the present state. */
static bool is_proper(const struct pe *pe, uint32_t code)
{
    const uint32_t number = current(pe);
    const bool active = number < EXCEPTIONS && (pe->exceptions.active & bit(number)) != 0;
    const bool to_thread = (code & RETURN_TO_THREAD) != 0;
    const bool last = active && pe->exceptions.active == bit(number);
    const uint32_t choice = (uint32_t)(RETURN_NO_FPU | RETURN_TO_THREAD | RETURN_TO_PROCESS_STACK);
    return active && (code & ~choice) == RETURN_BASE && to_thread == last &&
           (to_thread || (code & RETURN_TO_PROCESS_STACK) == 0);
}

/* Return from an exception: the core has jumped to `code`. False if the code is invalid, or the PE faults. */
bool exceptions_return(struct pe *pe, uint32_t code)
{
    if (!is_proper(pe, code)) {
        return false;
    }
    const bool process = (code & RETURN_TO_PROCESS_STACK) != 0;
    const uint32_t words = (code & RETURN_NO_FPU) != 0 ? FRAME_WORDS : FPU_FRAME_WORDS;
    uint32_t frame[FPU_FRAME_WORDS];
    pe->exceptions.active &= ~bit(current(pe));
    write_register(pe, UC_ARM_REG_FAULTMASK, 0);
    pe->event = true;
    if (exceptions_due(pe)) {
        return enter_handler(pe, code, CHAINED_CYCLES);
    }
    write_register(pe, UC_ARM_REG_IPSR, 0);
    write_register(pe, UC_ARM_REG_CONTROL,
                   (pe_register(pe, UC_ARM_REG_CONTROL) & ~(uint32_t)CONTROL_PROCESS_STACK) |
                       (process ? (uint32_t)CONTROL_PROCESS_STACK : 0U));
    const uint32_t address = pe_register(pe, UC_ARM_REG_SP);
    if (!frame_fits(pe, address, words, FAULT_READ)) {
        return false;
    }
    memcpy(frame, pe->sram + place_of(pe, address), 4 * words);
    pop_frame(pe, code, address, frame);
    pe->cycles += RETURN_CYCLES;
    blocks_jump(pe, frame[FRAME_PC] & ~1U);
    pe->unordered = pe->unordered_before & 1;
    pe->unordered_before >>= 1;
    return true;
}
