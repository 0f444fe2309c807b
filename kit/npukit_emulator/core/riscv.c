/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A RISC-V core's sleep: hardware manual, section 2.1. */
#include "mesh.h"

enum { INTERRUPTS_ON = 1 << 3, EXTERNAL = 1 << 11, EVENTS_BYTES = 4 };

/* Control registers are as they are at reset: no interrupt enabled, no FPU. */
void riscv_reset(struct pe *pe)
{
    const uint32_t none = 0;
    pe->mesh->unicorn->reg_write(pe->core, UC_RISCV_REG_MIE, &none);
    pe->mesh->unicorn->reg_write(pe->core, UC_RISCV_REG_MSTATUS, &none);
}

/* WFI: until the external interrupt is pending, which events make so. One that it does not end is a fault, and so is to
 * have interrupts taken: nothing here takes them. */
void riscv_wait(struct pe *pe, uint32_t at)
{
    if (pe->pc != pe->expected) { /* Unicorn's block goes on behind it */
        blocks_rewind(pe, pe->pc);
    }
    const bool wakes = pe->mesh->figures.events_base != 0 && (pe_register(pe, UC_RISCV_REG_MIE) & EXTERNAL) != 0;
    if ((pe_register(pe, UC_RISCV_REG_MSTATUS) & INTERRUPTS_ON) != 0) {
        pe_fault_at(pe, FAULT_OTHER, 0, at);
    } else if (!wakes) {
        pe_fault_at(pe, FAULT_NEVER_WAKES, 0, at);
    } else if (!pe->event) {
        pe->state = PE_ASLEEP;
    }
}

static uint32_t read_events(struct pe *pe, void *device, uint32_t offset)
{
    (void)pe, (void)device, (void)offset;
    return 0;
}

/* Those that came up to now are taken back: the core runs ahead, so it may get to know of them only later. */
static void write_events(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)device, (void)value;
    if (offset == 0) {
        pe->event = false;
        pe->event_taken = blocks_time(pe);
    }
}

const char *riscv_attach_events(struct pe *pe)
{
    const struct bus_port port = {NULL, NULL, read_events, write_events, NULL, false, false, 0};
    return bus_attach(pe, pe->mesh->figures.events_base, EVENTS_BYTES, port);
}
