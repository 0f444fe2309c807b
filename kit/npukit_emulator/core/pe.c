/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A processing element: runs its core until the slice ends, or the core sleeps or fails. */
#include <stdlib.h>
#include <string.h>

#include "mesh.h"
#include "need.h"
#include "noc.h"

enum { TRANSLATION_BUFFER_BYTES = 1 << 20, ARM_PAGE_BYTES = 1 << 10, RISCV_PAGE_BYTES = 1 << 12, NOWHERE = 0xFFFFFFF0 };
enum { HINT_YIELD = 1, HINT_WFE = 2, HINT_WFI = 3 };
enum { INTERRUPT_SVC = 2, INTERRUPT_FETCH = 3, INTERRUPT_BREAKPOINT = 7, INTERRUPT_RETURN = 8, SVC_BYTES = 2 };

enum { TRAP_UNDEFINED = 2, TRAP_BREAKPOINT = 3, TRAP_CALL = 11, RISCV_WFI = 0x10500073 };

/* A jump to this address or a higher one returns from an exception. */
#define FIRST_EXCEPTION_RETURN 0xFF000000U

static uint32_t word(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

uint32_t pe_register(const struct pe *pe, int name)
{
    uint32_t value = 0;
    if (pe->core != NULL) {
        pe->mesh->unicorn->reg_read(pe->core, name, &value);
    }
    return value;
}

uint32_t pe_counter(const struct pe *pe)
{
    return pe_register(pe, pe->riscv ? UC_RISCV_REG_PC : UC_ARM_REG_PC);
}

uint32_t pe_stack_pointer(const struct pe *pe)
{
    return pe_register(pe, pe->riscv ? UC_RISCV_REG_SP : UC_ARM_REG_SP);
}

static void write_register(struct pe *pe, int name, uint32_t value)
{
    pe->mesh->unicorn->reg_write(pe->core, name, &value);
}

/* Fault at `pc` (0: where the core is), and end the run. */
void pe_fault_at(struct pe *pe, uint32_t kind, uint32_t address, uint32_t pc)
{
    if (pe->fault_kind == FAULT_NONE) {
        pe->fault_kind = kind;
        pe->fault_address = address;
        pe->fault_pc = pc;
    }
    if (!pe->alone) {
        pe_report_fault(pe);
    }
    pe->stop = STOP_FAULT;
    pe->mesh->unicorn->emu_stop(pe->core);
}

/* Stop the board for this PE's fault, unless the board has stopped for another's. */
void pe_report_fault(struct pe *pe)
{
    if (pe->mesh->faulted == NULL) {
        pe->mesh->faulted = pe;
    }
}

void pe_fault(struct pe *pe, uint32_t kind, uint32_t address)
{
    pe_fault_at(pe, kind, address, blocks_site_known(pe) ? pe->site : 0);
}

/* Fault if a register write hands memory to a device while stores to memory are pending. Armv7-M orders stores to
 * memory and to devices only by a barrier. */
void pe_needs_barrier(struct pe *pe)
{
    if (pe->in_access && blocks_stored_before_site(pe)) {
        pe_fault(pe, FAULT_NO_BARRIER, 0);
    }
}

/* Stop the PE for good and make it unreachable. */
void pe_kill(struct pe *pe)
{
    noc_set_pe_dead(pe->mesh, pe->number);
    dma_stop(pe);
    pe->state = pe->state == PE_ABSENT ? PE_ABSENT : PE_DEAD;
}

static uint32_t interrupt_kind(uint32_t number, uint32_t pc)
{
    switch (number) {
    case INTERRUPT_SVC:
        return FAULT_SVC;
    case INTERRUPT_BREAKPOINT:
        return FAULT_BREAKPOINT;
    case INTERRUPT_FETCH:
        return pc >= FIRST_EXCEPTION_RETURN ? FAULT_EXCEPTION : FAULT_FETCH;
    default:
        return FAULT_OTHER;
    }
}

/* The kind of fault for a trap's mcause. */
static uint32_t trap_kind(uint32_t cause)
{
    switch (cause) {
    case TRAP_UNDEFINED:
        return FAULT_UNDEFINED;
    case TRAP_BREAKPOINT:
        return FAULT_BREAKPOINT;
    case TRAP_CALL:
        return FAULT_SVC;
    default:
        return FAULT_OTHER;
    }
}

static void on_interrupt(uc_engine *core, uint32_t number, void *user)
{
    struct pe *pe = user;
    (void)core;
    const uint32_t pc = pe_counter(pe);
    if (pe->riscv) {
        pe->site = NO_SITE;
        pe_fault_at(pe, trap_kind(number), pc, 0);
        return;
    }
    /* Unicorn recognises a return from a handler only after an MSR that marks the handler, as in a task switch.
     * Otherwise the return looks like a failed fetch. */
    const bool returns = number == INTERRUPT_RETURN || (number == INTERRUPT_FETCH && pc >= FIRST_EXCEPTION_RETURN);
    if (returns && pe->exceptions.active != 0) {
        pe->stop = STOP_RETURN;
        pe->mesh->unicorn->emu_stop(pe->core);
        return;
    }
    pe->site = NO_SITE;
    pe_fault_at(pe, interrupt_kind(number, pc), pc, number == INTERRUPT_SVC ? pc - SVC_BYTES : 0);
}

static bool on_bad_access(uc_engine *core, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
    struct pe *pe = user;
    (void)core, (void)size, (void)value;
    const bool read = type == UC_MEM_READ_UNMAPPED || type == UC_MEM_READ_PROT;
    const bool fetch = type == UC_MEM_FETCH_UNMAPPED || type == UC_MEM_FETCH_PROT;
    const bool own_code = type == UC_MEM_WRITE_PROT && is_memory(pe, (uint32_t)address, 1);
    pe_fault(pe, read ? FAULT_READ : fetch ? FAULT_FETCH : own_code ? FAULT_OWN_CODE : FAULT_WRITE, (uint32_t)address);
    return false;
}

void pe_create(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    pe->state = PE_ABSENT;
    for (uint32_t i = 0; i < figures->memory_count; i++) {
        pe->memory_bases[i] = figures->memories[i].base + (figures->shared ? pe->number * figures->memories[i].bytes : 0);
        pe->memory_bytes[i] = figures->memories[i].bytes;
    }
    pe->code_base = pe->memory_bases[0];
    pe->flags = needed(calloc(pe->mesh->figures.flags, sizeof *pe->flags));
}

static bool map_memories(struct pe *pe)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    const struct figures *figures = &pe->mesh->figures;
    uint8_t *place = pe->sram;
    bool mapped = true;
    for (uint32_t i = 0; i < figures->memory_count; i++) {
        const uint32_t bytes = figures->memories[i].bytes;
        mapped = mapped && unicorn->mem_map_ptr(pe->core, pe->memory_bases[i], pe->memory_bytes[i], UC_PROT_ALL, place) ==
                               UC_ERR_OK;
        place += bytes;
    }
    return mapped;
}

static bool open_core(struct pe *pe)
{
    const struct unicorn *unicorn = pe->mesh->unicorn;
    uc_hook hook;
    const bool riscv = pe->riscv;
    /* MCLASS in the mode would select a Cortex-M33. */
    return unicorn->open(riscv ? UC_ARCH_RISCV : UC_ARCH_ARM, riscv ? UC_MODE_RISCV32 : UC_MODE_THUMB, &pe->core) ==
               UC_ERR_OK &&
           unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_CPU_MODEL, 1), pe->core_model) == UC_ERR_OK &&
           unicorn->ctl(pe->core, UC_CTL_WRITE(UC_CTL_TCG_BUFFER_SIZE, 1), TRANSLATION_BUFFER_BYTES) == UC_ERR_OK &&
           map_memories(pe) &&
           unicorn->hook_add(pe->core, &hook, UC_HOOK_INTR, (void *)on_interrupt, pe, 1, 0) == UC_ERR_OK &&
           unicorn->hook_add(pe->core, &hook, UC_HOOK_MEM_INVALID, (void *)on_bad_access, pe, 1, 0) == UC_ERR_OK;
}

/* Write-protect the whole pages of code: Unicorn catches stores there at no cost. */
static bool protect_code(struct pe *pe)
{
    const struct image *image = pe->image;
    const uint32_t page = pe->riscv ? RISCV_PAGE_BYTES : ARM_PAGE_BYTES;
    const uint32_t from = (image->code_from + page - 1) / page * page;
    const uint32_t to = image->code_to / page * page;
    const uint32_t last = pe->code_base + pe->mesh->figures.code_bytes;
    const uint32_t end = to < last ? to : last;
    return end <= from || pe->mesh->unicorn->mem_protect(pe->core, from, end - from, UC_PROT_READ | UC_PROT_EXEC) ==
                              UC_ERR_OK;
}

/* Give the PE a core and a program. Returns 0, or an error message. */
const char *pe_power_up(struct pe *pe, struct image *image)
{
    pe->image = image;
    image->pe_count++;
    pe->blocks = image->blocks;
    pe->block = &unknown_block;
    pe->block_places = pe->mesh->figures.code_bytes / 2;
    if (!open_core(pe) || !protect_code(pe) || !shadow_watch(pe) || !waits_watch(pe)) {
        return "Unicorn does not start";
    }
    const struct debug *debug = &pe->mesh->debug;
    pe->watched = debug->on && debug->pe == pe->number;
    const char *complaint = blocks_watch(pe);
    complaint = complaint ? complaint : system_attach(pe);
    complaint = complaint == NULL && !pe->mesh->figures.stock ? timer_attach(pe) : complaint;
    complaint = complaint ? complaint : devices_attach(pe);
    if (complaint == NULL && pe->riscv && pe->mesh->figures.events_base != 0) {
        complaint = riscv_attach_events(pe);
    }
    if (complaint == NULL && pe->mesh->figures.noc_base != 0) {
        complaint = dma_attach(pe);
    }
    complaint = complaint ? complaint : stock_attach(pe);
    complaint = complaint == NULL && pe->mesh->figures.shared ? bus_attach_others(pe) : complaint;
    if (complaint == NULL && pe->number == pe->mesh->root) {
        complaint = uart_attach(pe);
    }
    if (complaint == NULL && pe->number == pe->mesh->root) {
        complaint = pe->mesh->flash != NULL ? flash_attach(pe) : boot_attach(pe);
    }
    return complaint;
}

static const int registers_zero_at_reset[] = {UC_ARM_REG_IPSR, UC_ARM_REG_CONTROL, UC_ARM_REG_PRIMASK,
                                              UC_ARM_REG_BASEPRI, UC_ARM_REG_FAULTMASK};

/* Reset Arm's registers. Returns the program's entry from the vector table. */
static uint32_t start_arm(struct pe *pe)
{
    for (size_t i = 0; i < sizeof registers_zero_at_reset / sizeof registers_zero_at_reset[0]; i++) {
        write_register(pe, registers_zero_at_reset[i], 0);
    }
    const uint8_t *vectors = pe->sram + pe->mesh->figures.start;
    write_register(pe, UC_ARM_REG_SP, word(vectors));
    write_register(pe, UC_ARM_REG_LR, UINT32_MAX);
    return word(vectors + 4) & ~1U;
}

/* Start the PE: from the vector table (Arm) or from the start of the code (RISC-V). */
void pe_reset(struct pe *pe)
{
    system_reset(pe);
    calls_forget(pe);
    if (pe->riscv) {
        riscv_reset(pe);
    }
    blocks_jump(pe, pe->riscv ? pe->code_base + pe->mesh->figures.start : start_arm(pe));
    waits_forget(pe);
    pe->site = NO_SITE;
    pe->state = PE_RUNNING;
    schedule_add(pe->mesh, pe);
}

/* WFE: clear the event register if set. Otherwise sleep until an event, or until an exception is due. */
static void wait_for_event(struct pe *pe)
{
    pe->event_taken = pe->cycles;
    if (pe->event) {
        pe->event = false;
    } else if (!exceptions_due(pe)) {
        pe->state = PE_ASLEEP;
    }
}

/* WFI: sleep until an exception is due, whatever PRIMASK is. A sleep that nothing can end is a fault. */
static void wait_for_interrupt(struct pe *pe, uint32_t at)
{
    if (pe->riscv) {
        riscv_wait(pe, at);
        return;
    }
    if (exceptions_wake_wfi(pe)) {
        return;
    }
    if (system_next_tick(pe) == NEVER && !devices_interrupt(pe)) {
        pe_fault_at(pe, FAULT_NEVER_WAKES, 0, at);
        return;
    }
    pe->waits_for_interrupt = true;
    pe->state = PE_ASLEEP;
}

static void wake(struct pe *pe, uint64_t now)
{
    const uint64_t woken = now > pe->cycles ? now : pe->cycles;
    const uint64_t wakes = woken + (pe->number == pe->mesh->root ? 0 : disturb_delay(pe)); /* keeps up with the UART */
    pe->asleep += wakes - pe->cycles;
    trace_record(pe->mesh, (struct trace_record){pe->cycles, wakes, TRACE_SLEEP, pe->number, 0, 0, 0, 0});
    pe->cycles = wakes;
    pe->event_taken = woken;
    pe->waits_for_interrupt = false;
    pe->state = PE_RUNNING;
    schedule_add(pe->mesh, pe);
}

/* SysTick of a sleeping PE has reached zero. */
static void on_tick(struct mesh *mesh, void *subject)
{
    struct pe *pe = subject;
    if (pe->state != PE_ASLEEP || system_next_tick(pe) > mesh->now) {
        return; /* the PE woke meanwhile, and may sleep again */
    }
    system_tick(pe, mesh->now);
    if (pe->waits_for_interrupt ? exceptions_wake_wfi(pe) : exceptions_due(pe)) {
        wake(pe, mesh->now);
    } else {
        pe_post_tick(pe);
    }
}

/* Pend an interrupt, and wake the core if the interrupt is due. */
void pe_interrupt(struct pe *pe, uint32_t number)
{
    exceptions_pend(pe, number);
    if (pe->state == PE_ASLEEP && (pe->waits_for_interrupt ? exceptions_wake_wfi(pe) : exceptions_due(pe))) {
        wake(pe, pe->mesh->now);
    }
}

/* Let SysTick, if on, wake a sleeping PE. */
void pe_post_tick(struct pe *pe)
{
    const uint64_t tick = system_next_tick(pe);
    if (tick != NEVER) {
        events_post(pe->mesh, tick > pe->cycles ? tick : pe->cycles, pe->number, on_tick, pe);
    }
}

/* Set the event register, or wake the core. A core runs ahead: a WFE may have consumed the event already
 * (`event_taken`). The event line of a RISC-V core stays set until the core clears it. */
void pe_set_event(struct pe *pe)
{
    const uint64_t now = pe->mesh->now;
    const bool riscv = pe->riscv, news = now > pe->event_taken;
    if (pe->state == PE_ASLEEP && !pe->waits_for_interrupt && (news || !riscv)) {
        pe->event = riscv;
        wake(pe, now);
    } else if (news) {
        pe->event = true;
    }
}

/* The hint instruction just before `pc`, or 0. `bytes`: its size. */
static uint32_t hint_before(const struct pe *pe, uint32_t pc, uint32_t *bytes)
{
    *bytes = 2;
    if (pc - pe->code_base < 4 || pc - pe->code_base > pe->mesh->figures.code_bytes) {
        return 0;
    }
    const uint8_t *before = pe->sram + (pc - pe->code_base) - 4;
    if (pe->riscv) {
        *bytes = 4;
        return word(before) == RISCV_WFI ? HINT_WFI : 0;
    }
    const uint32_t last = word(before) >> 16;
    const uint32_t one_before = word(before) & 0xFFFF;
    if ((last & 0xFF0F) == 0xBF00) {
        return last >> 4 & 0xF;
    }
    *bytes = 4;
    return one_before == 0xF3AF && (last & 0xFFF0) == 0x8000 ? last & 0xF : 0;
}

/* Unicorn returned without a request to stop. False if the slice is over. */
static bool came_back(struct pe *pe, uc_err error)
{
    uint32_t bytes;
    const uint32_t hint = hint_before(pe, pe->pc, &bytes);
    if (error == UC_ERR_INSN_INVALID && hint == HINT_YIELD) {
        return true;
    }
    if (error == UC_ERR_INSN_INVALID && hint == HINT_WFE) {
        wait_for_event(pe);
        return pe->state == PE_RUNNING;
    }
    if (hint == HINT_WFI && (error == UC_ERR_OK || pe->riscv)) {
        wait_for_interrupt(pe, pe->pc - bytes);
        return pe->state == PE_RUNNING && pe->stop == STOP_NONE;
    }
    pe_fault(pe, error == UC_ERR_INSN_INVALID || error == UC_ERR_EXCEPTION ? FAULT_UNDEFINED : FAULT_OTHER, pe->pc);
    return false;
}

static void run_once(struct pe *pe, uc_err *error)
{
    pe->stop = STOP_NONE;
    pe->limit = pe->resumes ? 0 : exceptions_limit(pe);
    *error = pe->mesh->unicorn->emu_start(pe->core, pe->riscv ? pe->pc : pe->pc | 1, NOWHERE, 0, 0);
    pe->pc = pe_counter(pe);
}

static bool return_from_exception(struct pe *pe)
{
    const bool returned = exceptions_return(pe, pe->pc | 1);
    if (!returned && pe->stop != STOP_FAULT) {
        pe_fault_at(pe, FAULT_EXCEPTION, pe->pc, 0);
    }
    return returned;
}

/* Act on a request to stop. True if the core may continue at once. */
static bool answer_stop(struct pe *pe, uc_err error)
{
    switch (pe->stop) {
    case STOP_NONE:
        return came_back(pe, error);
    case STOP_WAIT_FOR_OTHERS:
        if (pe->state != PE_DEAD) {
            blocks_rewind(pe, pe->pc);
        }
        return false;
    case STOP_INSTRUMENT:
        if (!blocks_rewind(pe, pe->pc)) {
            return false;
        }
        blocks_instrument_left(pe);
        return true;
    case STOP_AND_GO_ON:
        return true;
    case STOP_EXCEPTION:
        return exceptions_take(pe);
    case STOP_RETURN:
        return return_from_exception(pe);
    case STOP_REPEAT:
        blocks_rewind(pe, pe->pc);
        alone_repeat(pe);
        return true;
    case STOP_DEBUG:
        blocks_rewind(pe, pe->pc);
        pe->mesh->debug.stopped = true;
        return false;
    default:
        return false;
    }
}

/* Run until the end of the block that reaches a cycle, or until the core sleeps, fails or must wait for other PEs. */
void pe_run(struct pe *pe, uint64_t until)
{
    uc_err error;
    pe->slice_end = until;
    do {
        run_once(pe, &error);
    } while (answer_stop(pe, error));
    if (pe->stop == STOP_FAULT) {
        pe->state = PE_FAULTED;
    }
}
