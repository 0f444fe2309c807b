/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The system control space: SysTick, the NVIC, the system control block. Armv7-M, B3.2 to B3.4. */
#include <string.h>

#include "mesh.h"

enum { SPACE = 0xE000E000, SPACE_BYTES = 0x1000, CPUID_VALUE = 0x410FC241 };
enum offset {
    TICK_CONTROL = 0x010,
    TICK_RELOAD = 0x014,
    TICK_VALUE = 0x018,
    TICK_CALIBRATION = 0x01C,
    SET_ENABLED = 0x100,
    CLEAR_ENABLED = 0x180,
    SET_PENDING = 0x200,
    CLEAR_PENDING = 0x280,
    ACTIVE = 0x300,
    PRIORITIES = 0x400,
    CPUID = 0xD00,
    CONTROL_AND_STATE = 0xD04,
    VECTOR_TABLE = 0xD08,
    RESET_CONTROL = 0xD0C,
    SLEEP_CONTROL = 0xD10,
    CONFIGURATION = 0xD14,
    HANDLER_PRIORITIES = 0xD18,
    HANDLERS = 0xD24,
    FAULT_STATUS = 0xD28,
    COPROCESSORS = 0xD88,
    SOFTWARE_TRIGGER = 0xF00,
    FPU_CONTEXT = 0xF34,
    FPU_CONTEXT_ADDRESS = 0xF38,
    FPU_DEFAULT = 0xF3C,
    FPU_FEATURES = 0xF40,
};
enum { TICK_ON = 1, TICK_INTERRUPTS = 2, TICK_CORE_CLOCK = 4, TICK_COUNTED = 1 << 16 };
enum { TICK_BITS = 0xFFFFFF, FIRST_HANDLER_PRIORITY = 4, HANDLER_PRIORITY_BYTES = 12 };
enum { FPU_ACCESS_SHIFT = 20, FPU_ACCESS = 0xF, CONFIGURATION_AT_RESET = 0x200 };

#define TICK_NO_REFERENCE 0x80000000U
#define RESET_KEY 0x05FA0000U
#define RESET_KEY_READ 0xFA050000U
#define FPU_CONTEXT_AT_RESET 0xC0000000U
#define ALWAYS_ENABLED ((uint64_t)0xFFFF)

enum { NMI_SET = 31, PENDSV_SET = 28, PENDSV_CLEAR = 27, TICK_SET = 26, TICK_CLEAR = 25, SOME_PENDING = 22 };
enum { RESET_REQUEST = 4 };
enum { PENDING_SHIFT = 12, LAST_ACTIVE = 1 << 11 };

static bool is_set(uint32_t value, uint32_t bit)
{
    return (value >> bit & 1) != 0;
}

/* ---- SysTick ---- */

static bool counts(const struct tick *tick)
{
    return tick->on && (tick->reload > 0 || tick->value > 0);
}

/* Advance SysTick to a cycle. */
void system_tick(struct pe *pe, uint64_t now)
{
    struct tick *tick = &pe->exceptions.tick;
    if (!counts(tick) || now < tick->zero_at) {
        return;
    }
    const uint64_t period = (uint64_t)tick->reload + 1;
    tick->zero_at += ((now - tick->zero_at) / period + 1) * period;
    tick->counted = true;
    tick->value = 0;
    if (tick->interrupts) {
        exceptions_pend(pe, SYSTICK);
    }
}

uint64_t system_next_tick(const struct pe *pe)
{
    const struct tick *tick = &pe->exceptions.tick;
    return counts(tick) && tick->interrupts ? tick->zero_at : NEVER;
}

static uint32_t tick_value(const struct tick *tick, uint64_t now)
{
    const uint64_t left = counts(tick) ? tick->zero_at - now : tick->value;
    return counts(tick) && left > tick->reload && tick->value == 0 ? 0 : (uint32_t)left;
}

/* Start counting from `value`, or from `reload` if `value` is 0. */
static void begin_to_count(struct tick *tick, uint64_t now, uint32_t value)
{
    tick->value = value;
    tick->zero_at = value > 0 ? now + value : now + 1 + tick->reload;
}

static void control_tick(struct pe *pe, uint32_t value, uint64_t now)
{
    struct tick *tick = &pe->exceptions.tick;
    const bool on = (value & TICK_ON) != 0;
    tick->interrupts = (value & TICK_INTERRUPTS) != 0;
    if (on && !tick->on) {
        begin_to_count(tick, now, tick->value);
    } else if (!on && tick->on) {
        tick->value = tick_value(tick, now);
    }
    tick->on = on;
}

static uint32_t read_tick_control(struct tick *tick)
{
    const uint32_t value = (tick->on ? TICK_ON : 0U) | (tick->interrupts ? TICK_INTERRUPTS : 0U) | TICK_CORE_CLOCK |
                           (tick->counted ? TICK_COUNTED : 0U);
    tick->counted = false;
    return value;
}

static void clear_tick(struct tick *tick, uint64_t now)
{
    tick->counted = false;
    tick->value = 0;
    if (tick->on) {
        begin_to_count(tick, now, 0);
    }
}

/* ---- registers ---- */

static uint32_t four(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static bool is_within(uint32_t offset, uint32_t first, uint32_t bytes)
{
    return offset >= first && offset < first + bytes;
}

static uint8_t *priorities_at(struct exceptions *exceptions, uint32_t offset)
{
    if (is_within(offset, PRIORITIES, INTERRUPTS)) {
        return &exceptions->priority[FIRST_INTERRUPT + offset - PRIORITIES];
    }
    if (is_within(offset, HANDLER_PRIORITIES, HANDLER_PRIORITY_BYTES)) {
        return &exceptions->priority[FIRST_HANDLER_PRIORITY + offset - HANDLER_PRIORITIES];
    }
    return NULL;
}

static uint32_t of_interrupts(uint64_t set)
{
    return (uint32_t)(set >> FIRST_INTERRUPT);
}

static uint32_t control_and_state(const struct pe *pe)
{
    const struct exceptions *exceptions = &pe->exceptions;
    const uint32_t current = pe_register(pe, UC_ARM_REG_IPSR) & 0x1FF;
    const bool last = (exceptions->active & (exceptions->active - 1)) == 0;
    const uint32_t pending = (uint32_t)exceptions->pending;
    return current | (last ? LAST_ACTIVE : 0U) | exceptions_highest(exceptions) << PENDING_SHIFT |
           (of_interrupts(exceptions->pending) != 0 ? 1U << SOME_PENDING : 0U) |
           (is_set(pending, SYSTICK) ? 1U << TICK_SET : 0U) | (is_set(pending, PENDSV) ? 1U << PENDSV_SET : 0U);
}

/* The register at `offset`, if it keeps the value written; otherwise 0. */
static uint32_t *kept_at(struct exceptions *exceptions, uint32_t offset)
{
    switch (offset) {
    case VECTOR_TABLE:
        return &exceptions->vector_table;
    case SLEEP_CONTROL:
        return &exceptions->sleep_control;
    case CONFIGURATION:
        return &exceptions->configuration;
    case HANDLERS:
        return &exceptions->handlers;
    case COPROCESSORS:
        return &exceptions->coprocessors;
    case FPU_CONTEXT:
        return &exceptions->fpu_context;
    case FPU_CONTEXT_ADDRESS:
        return &exceptions->fpu_context_address;
    case FPU_DEFAULT:
        return &exceptions->fpu_default;
    default:
        return NULL;
    }
}

static uint32_t read_system(struct pe *pe, void *device, uint32_t offset)
{
    static const uint32_t fpu_features[] = {0x10110021, 0x11000011, 0x00000040};
    struct exceptions *exceptions = device;
    const uint8_t *priorities = priorities_at(exceptions, offset);
    const uint32_t *kept = kept_at(exceptions, offset);
    system_tick(pe, blocks_time(pe));
    if (priorities != NULL || kept != NULL) {
        return priorities != NULL ? four(priorities) : *kept;
    }
    if (is_within(offset, FPU_FEATURES, sizeof fpu_features)) {
        return fpu_features[(offset - FPU_FEATURES) / 4];
    }
    switch ((enum offset)offset) {
    case TICK_CONTROL:
        return read_tick_control(&exceptions->tick);
    case TICK_RELOAD:
        return exceptions->tick.reload;
    case TICK_VALUE:
        return tick_value(&exceptions->tick, blocks_time(pe));
    case TICK_CALIBRATION:
        return TICK_NO_REFERENCE;
    case SET_ENABLED:
    case CLEAR_ENABLED:
        return of_interrupts(exceptions->enabled);
    case SET_PENDING:
    case CLEAR_PENDING:
        return of_interrupts(exceptions->pending);
    case ACTIVE:
        return of_interrupts(exceptions->active);
    case CPUID:
        return CPUID_VALUE;
    case CONTROL_AND_STATE:
        return control_and_state(pe);
    case RESET_CONTROL:
        return RESET_KEY_READ | exceptions->priority_group << 8;
    default:
        return 0;
    }
}

static void change_pending(struct exceptions *exceptions, uint32_t value)
{
    const uint64_t set = (is_set(value, NMI_SET) ? 1U << NMI : 0U) | (is_set(value, PENDSV_SET) ? 1U << PENDSV : 0U) |
                         (is_set(value, TICK_SET) ? 1U << SYSTICK : 0U);
    const uint64_t clear = (is_set(value, PENDSV_CLEAR) ? 1U << PENDSV : 0U) |
                           (is_set(value, TICK_CLEAR) ? 1U << SYSTICK : 0U);
    exceptions->pending = (exceptions->pending | set) & ~clear;
}

static void write_interrupts(struct exceptions *exceptions, uint32_t offset, uint32_t value)
{
    const uint64_t set = (uint64_t)value << FIRST_INTERRUPT;
    switch ((enum offset)offset) {
    case SET_ENABLED:
        exceptions->enabled |= set;
        break;
    case CLEAR_ENABLED:
        exceptions->enabled &= ~set;
        break;
    case SET_PENDING:
        exceptions->pending |= set;
        break;
    case CLEAR_PENDING:
        exceptions->pending &= ~set;
        break;
    case SOFTWARE_TRIGGER:
        exceptions->pending |= (value & 0x1FF) < INTERRUPTS ? (uint64_t)1 << (FIRST_INTERRUPT + (value & 0x1FF)) : 0;
        break;
    case CONTROL_AND_STATE:
        change_pending(exceptions, value);
        break;
    case RESET_CONTROL:
        exceptions->priority_group = (value & 0xFFFF0000U) == RESET_KEY ? value >> 8 & 7 : exceptions->priority_group;
        break;
    default:
        break;
    }
}

static void write_tick(struct pe *pe, uint32_t offset, uint32_t value)
{
    struct tick *tick = &pe->exceptions.tick;
    if (offset == TICK_CONTROL) {
        control_tick(pe, value, blocks_time(pe));
    } else if (offset == TICK_RELOAD) {
        tick->reload = value & TICK_BITS;
    } else if (offset == TICK_VALUE) {
        clear_tick(tick, blocks_time(pe));
    }
}

static void write_system(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct exceptions *exceptions = device;
    uint8_t *priorities = priorities_at(exceptions, offset);
    uint32_t *kept = kept_at(exceptions, offset);
    system_tick(pe, blocks_time(pe));
    if (priorities != NULL) {
        memcpy(priorities, &value, sizeof value);
    } else if (kept != NULL) {
        *kept = value;
    } else {
        write_tick(pe, offset, value);
        write_interrupts(exceptions, offset, value);
        if (offset == RESET_CONTROL && (value & RESET_REQUEST) != 0) {
            stock_restart(pe);
        }
    }
    pe->fpu = (exceptions->coprocessors >> FPU_ACCESS_SHIFT & FPU_ACCESS) == FPU_ACCESS;
    pe->limit = 0; /* makes the block hook check exceptions */
}

/* Registers that also take bytes and halfwords. */
static bool is_narrow(uint32_t offset)
{
    return is_within(offset, PRIORITIES, INTERRUPTS) || is_within(offset, FAULT_STATUS, 4) ||
           is_within(offset, HANDLER_PRIORITIES, HANDLER_PRIORITY_BYTES);
}

void system_reset(struct pe *pe)
{
    pe->exceptions = (struct exceptions){
        .enabled = ALWAYS_ENABLED, .vector_table = pe->code_base + pe->mesh->figures.start, .configuration = CONFIGURATION_AT_RESET, .fpu_context = FPU_CONTEXT_AT_RESET};
    pe->fpu = pe->riscv;
}

const char *system_attach(struct pe *pe)
{
    const struct bus_port port = {NULL, &pe->exceptions, read_system, write_system, is_narrow, false, false, 0};
    system_reset(pe);
    if (pe->riscv) {
        return NULL;
    }
    return bus_attach(pe, SPACE, SPACE_BYTES, port);
}
