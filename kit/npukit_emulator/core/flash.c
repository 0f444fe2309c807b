/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The root PE's flash: hardware manual, sections 7.1 and 7.2. */
#include <stdlib.h>
#include <string.h>

#include "flash_state.h"
#include "need.h"

enum register_offset {
    ERASE = 0x00,
    ADDRESS = 0x04,
    DATA = 0x08,
    STATUS = 0x0C,
    ERROR = 0x10,
    CAUSE = 0x14,
    ARM = 0x18,
    START = 0x1C,
    RESTART = 0x20,
    WATCHDOG = 0x24,
    REGISTER_BYTES = 0x28,
};
enum { STATUS_BUSY = 1, STATUS_ERROR = 2 };
enum { ERASED = 0xFF };

void flash_fail(struct flash *flash, enum flash_error error)
{
    flash->error = flash->error != 0 ? flash->error : (uint32_t)error;
}

/* ---- operations ---- */

static uint32_t random_bits(struct flash *flash)
{
    flash->chance ^= flash->chance << 13;
    flash->chance ^= flash->chance >> 17;
    flash->chance ^= flash->chance << 5;
    return flash->chance;
}

/* Bits left unchanged by an interrupted operation: none, all, or some. */
static uint32_t bits_left(struct flash *flash, uint32_t kind)
{
    return kind == 0 ? 0 : kind == 1 ? UINT32_MAX : random_bits(flash);
}

static uint32_t load(const struct flash *flash, uint32_t place)
{
    uint32_t value;
    memcpy(&value, flash->memory + place, WORD);
    return value;
}

static void store(struct flash *flash, uint32_t place, uint32_t value)
{
    memcpy(flash->memory + place, &value, WORD);
}

static void cut_short(struct flash *flash)
{
    const uint32_t kind = random_bits(flash) % 4;
    const uint32_t bytes = flash->erases ? flash->figures.page_bytes : (uint32_t)WORD;
    for (uint32_t at = flash->place; at < flash->place + bytes; at += WORD) {
        const uint32_t old = load(flash, at);
        const uint32_t wanted = flash->erases ? UINT32_MAX : flash->value;
        const uint32_t left = bits_left(flash, kind);
        store(flash, at, (old & left) | (wanted & ~left));
    }
}

static void finish(struct mesh *mesh, void *subject)
{
    struct flash *flash = subject;
    (void)mesh;
    if (flash->erases) {
        memset(flash->memory + flash->place, ERASED, flash->figures.page_bytes);
    } else {
        store(flash, flash->place, flash->value);
    }
    flash->busy = false;
    pe_set_event(flash->pe);
}

static void end_board(struct pe *pe, enum end end)
{
    pe->mesh->end = end;
    pe->stop = STOP_LIMIT;
    pe->mesh->unicorn->emu_stop(pe->core);
}

static void begin(struct flash *flash, uint32_t place, bool erases, uint32_t value)
{
    struct mesh *mesh = flash->pe->mesh;
    flash->busy = true;
    flash->erases = erases;
    flash->place = place;
    flash->value = value;
    if (++flash->operations == flash->cut_at) {
        cut_short(flash);
        end_board(flash->pe, END_POWER);
        return;
    }
    const uint64_t cycles = erases ? flash->figures.erase_cycles : flash->figures.program_cycles;
    events_post(mesh, mesh->now + cycles, flash->pe->number, finish, flash);
}

static bool may_change(struct flash *flash, uint32_t place, uint32_t alignment, uint32_t protected_bytes)
{
    if (flash->busy) {
        flash_fail(flash, ERROR_BUSY);
    } else if (place % alignment != 0 || place >= flash->figures.bytes) {
        flash_fail(flash, ERROR_PLACE);
    } else if (place < protected_bytes) {
        flash_fail(flash, ERROR_PROTECTED);
    } else {
        return true;
    }
    return false;
}

static void program(struct flash *flash, uint32_t value)
{
    if (!may_change(flash, flash->address, WORD, flash->figures.loader_bytes - flash->figures.once_bytes)) {
        return;
    }
    if ((value & ~load(flash, flash->address)) != 0) {
        flash_fail(flash, ERROR_NOT_ERASED);
        return;
    }
    flash->address += WORD;
    begin(flash, flash->address - WORD, false, value);
}

/* ---- watchdog ---- */

uint64_t flash_watchdog(const struct mesh *mesh)
{
    return mesh->flash == NULL ? NEVER : mesh->flash->watchdog;
}

void flash_watchdog_expires(struct mesh *mesh)
{
    mesh->now = mesh->flash->watchdog;
    mesh->end = END_WATCHDOG;
}

static uint32_t cycles_left(const struct flash *flash)
{
    return flash->watchdog == NEVER ? 0 : (uint32_t)(flash->watchdog - flash->pe->mesh->now);
}

/* ---- registers ---- */

static uint32_t read_flash(struct pe *pe, void *device, uint32_t offset)
{
    const struct flash *flash = device;
    (void)pe;
    switch (offset) {
    case ADDRESS:
        return flash->address;
    case STATUS:
        return (flash->busy ? STATUS_BUSY : 0U) | (flash->error != 0 ? STATUS_ERROR : 0U);
    case ERROR:
        return flash->error;
    case CAUSE:
        return flash->cause;
    case WATCHDOG:
        return cycles_left(flash);
    default:
        return 0;
    }
}

static void write_flash(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct flash *flash = device;
    switch (offset) {
    case ERASE:
        if (may_change(flash, value, flash->figures.page_bytes, flash->figures.loader_bytes)) {
            begin(flash, value, true, 0);
        }
        break;
    case ADDRESS:
        flash->address = value;
        break;
    case DATA:
        program(flash, value);
        break;
    case ERROR:
        flash->error = 0;
        break;
    case ARM:
        boot_arm(flash, value);
        break;
    case START:
        boot_start(flash, value);
        break;
    case RESTART:
        end_board(pe, END_RESTART);
        break;
    case WATCHDOG:
        flash->watchdog = value == 0 ? NEVER : pe->mesh->now + value;
        break;
    default:
        break;
    }
}

const char *flash_attach(struct pe *pe)
{
    struct flash *flash = pe->mesh->flash;
    const struct flash_figures *figures = &flash->figures;
    flash->pe = pe;
    const uc_err error =
        pe->mesh->unicorn->mem_map_ptr(pe->core, figures->window, figures->bytes, UC_PROT_READ, flash->memory);
    if (error != UC_ERR_OK) {
        return "the flash lies where something else is, or is not made of whole pages";
    }
    const struct bus_port port = {NULL, flash, read_flash, write_flash, NULL, false, true, 0};
    return bus_attach(pe, figures->base, REGISTER_BYTES, port);
}

/* ---- the boot controller of a board loaded from outside: after a restart, the host loads the board again. The loader
 * area holds zeros: neither a loader nor a provision record (docs/protocol.md) ---- */

static uint32_t read_boot(struct pe *pe, void *device, uint32_t offset)
{
    (void)pe, (void)device, (void)offset;
    return 0;
}

static void write_boot(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)device, (void)value;
    if (offset == RESTART) {
        end_board(pe, END_RESTART);
    }
}

const char *boot_attach(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    const struct bus_port port = {NULL, NULL, read_boot, write_boot, NULL, false, true, 0};
    if (figures->boot_base == 0) {
        return NULL;
    }
    if (pe->mesh->unicorn->mem_map(pe->core, figures->boot_window, figures->boot_bytes, UC_PROT_READ) != UC_ERR_OK) {
        return "the flash lies where something else is, or is not made of whole pages";
    }
    return bus_attach(pe, figures->boot_base, REGISTER_BYTES, port);
}

void flash_create(struct mesh *mesh, struct flash_figures figures, uint8_t *memory, uint32_t cause)
{
    struct flash *flash = mesh->flash = needed(calloc(1, sizeof *flash));
    flash->figures = figures;
    flash->memory = memory;
    flash->cause = cause;
    flash->chance = 1;
    flash->watchdog = NEVER;
    flash->armed = needed(calloc(mesh->pe_count, sizeof *flash->armed));
}

/* Fill the root PE's SRAM from the loader area, as the controller does at power-on. */
void flash_load(struct mesh *mesh)
{
    const struct flash *flash = mesh->flash;
    const uint32_t room = mesh->figures.sram_bytes;
    const uint32_t bytes = flash->figures.loader_bytes < room ? flash->figures.loader_bytes : room;
    memcpy(mesh->pes[mesh->root].sram, flash->memory, bytes);
    shadow_written(&mesh->pes[mesh->root], 0, bytes);
    mesh->pes[mesh->root].cycles = (uint64_t)bytes / WORD * flash->figures.copy_cycles_per_word;
}

void flash_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance)
{
    mesh->flash->cut_at = mesh->flash->operations + operation;
    mesh->flash->chance = chance * 2654435761U + 1;
}

/* Free the flash. An operation under way is cut short. */
void flash_free(struct mesh *mesh)
{
    struct flash *flash = mesh->flash;
    if (flash == NULL) {
        return;
    }
    if (flash->busy && mesh->end != END_POWER) {
        cut_short(flash);
    }
    free(flash->armed);
    free(flash);
}
