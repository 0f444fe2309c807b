/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The core's exceptions (exceptions.c) and the system control space (system.c): Armv7-M, B1.5 and B3. */
#ifndef EXCEPTIONS_H
#define EXCEPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct pe;

enum exception { NO_EXCEPTION = 0, NMI = 2, SVCALL = 11, PENDSV = 14, SYSTICK = 15, FIRST_INTERRUPT = 16 };
#define IT_STATE 0x0600FC00U /* in xPSR: not 0 under an IT instruction */
enum { INTERRUPTS = 32, EXCEPTIONS = FIRST_INTERRUPT + INTERRUPTS };

/* SysTick. While on, the counter is zero at cycle `zero_at`, and then every `reload` + 1 cycles. */
struct tick {
    bool on, interrupts, counted;
    uint32_t reload, value; /* `value` while SysTick is off */
    uint64_t zero_at;
};

/* State of exceptions. A set has a bit for each exception. */
struct exceptions {
    uint64_t pending, active, enabled;
    uint8_t priority[EXCEPTIONS];
    uint32_t priority_group, vector_table, sleep_control, configuration, handlers, coprocessors;
    uint32_t fpu_context, fpu_context_address, fpu_default;
    struct tick tick;
};

/* exceptions.c */
void exceptions_pend(struct pe *pe, uint32_t number);
bool exceptions_enabled(const struct pe *pe, uint32_t number);
bool exceptions_due(struct pe *pe);
bool exceptions_wake_wfi(struct pe *pe);
uint32_t exceptions_highest(const struct exceptions *exceptions);
bool exceptions_take(struct pe *pe);
bool exceptions_return(struct pe *pe, uint32_t code);
uint64_t exceptions_limit(struct pe *pe);

/* system.c */
const char *system_attach(struct pe *pe);
void system_reset(struct pe *pe);
void system_tick(struct pe *pe, uint64_t now);
uint64_t system_next_tick(const struct pe *pe);

#endif
