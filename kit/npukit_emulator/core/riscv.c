/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A RISC-V core's sleep: hardware manual, section 1.2. */
#include "mesh.h"

enum { INTERRUPTS_ON = 1 << 3, EXTERNAL = 1 << 11, EVENTS_BYTES = 4 };

/* Reset the control registers: no interrupt enabled, no FPU. */
void riscv_reset(struct pe *pe)
{
    const uint32_t none = 0;
    pe->mesh->unicorn->reg_write(pe->core, UC_RISCV_REG_MIE, &none);
    pe->mesh->unicorn->reg_write(pe->core, UC_RISCV_REG_MSTATUS, &none);
}

/* WFI: sleep until events make the external interrupt pending. A sleep without that interrupt enabled is a fault.
 * Interrupts enabled in mstatus are a fault, too: the emulator takes none. */
void riscv_wait(struct pe *pe, uint32_t at)
{
    if (pe->pc != pe->expected) { /* Unicorn's block continues behind the WFI */
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

/* Clear the event line for all events up to this cycle. The core runs ahead: some of these events may arrive later. */
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
