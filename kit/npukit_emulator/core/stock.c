/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Registers of stock boards, from the board file: a UART, a timer, and pages of registers that keep the value written.
 * A Cortex-M also has a watchpoint unit. */
#include <stdlib.h>

#include "mesh.h"
#include "need.h"

enum { PAGE_BYTES = 0x1000, WATCHPOINTS = 0xE0001000, COMPARATORS = 4 << 28 };

/* Restart a stock board, which has no boot controller. */
void stock_restart(struct pe *pe)
{
    if (pe->mesh->figures.stock) {
        schedule_settle(pe->mesh, blocks_time(pe)); /* send bytes due by this cycle */
        pe->mesh->end = END_RESTART;
        pe->stop = STOP_LIMIT;
        pe->mesh->unicorn->emu_stop(pe->core);
    }
}

static bool is_uart(const struct pe *pe, uint32_t address)
{
    const struct mesh *mesh = pe->mesh;
    return pe->number == mesh->root && uart_is_at(&mesh->uart, address - (uint32_t)mesh->figures.uart_base);
}

static uint32_t stored(const struct mesh *mesh, uint32_t address)
{
    for (uint32_t i = 0; i < mesh->page_count; i++) {
        if (address - mesh->pages[i]->address < PAGE_BYTES) {
            return mesh->pages[i]->words[(address - mesh->pages[i]->address) / 4];
        }
    }
    return 0;
}

static uint32_t read_by_rules(const struct pe *pe, uint32_t address)
{
    const struct mesh *mesh = pe->mesh;
    uint32_t value = stored(mesh, address);
    for (uint32_t i = 0; i < mesh->rule_count; i++) {
        const struct rule *rule = &mesh->rules[i];
        if (rule->address != address) {
            continue;
        }
        value |= rule->kind == RULE_SET ? rule->value : 0;
        value = rule->kind == RULE_SAME ? stored(mesh, rule->value) : rule->kind == RULE_PE ? pe->number : value;
    }
    return value;
}

static uint32_t read_register(struct pe *pe, void *device, uint32_t offset)
{
    struct page *page = device;
    const uint32_t address = page->address + offset;
    uint32_t value;
    races_register(pe, &page->views[offset / 4], false);
    if (is_uart(pe, address)) {
        return uart_read(&pe->mesh->uart, address - (uint32_t)pe->mesh->figures.uart_base);
    }
    return timer_read(pe, address, &value) ? value : read_by_rules(pe, address);
}

static bool restarts(const struct mesh *mesh, uint32_t address, uint32_t value)
{
    for (uint32_t i = 0; i < mesh->rule_count; i++) {
        const struct rule *rule = &mesh->rules[i];
        if (rule->kind == RULE_RESTART && rule->address == address && (value & rule->value) == rule->value) {
            return true;
        }
    }
    return false;
}

static bool has_rule(const struct mesh *mesh, enum rule_kind kind, uint32_t address)
{
    bool has = false;
    for (uint32_t i = 0; i < mesh->rule_count; i++) {
        has = has || (mesh->rules[i].kind == kind && mesh->rules[i].address == address);
    }
    return has;
}

/* Start the PE whose program begins at `address`, unless it runs. */
static void start_at(struct mesh *mesh, uint32_t address)
{
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        struct pe *pe = &mesh->pes[i];
        if (pe->code_base + mesh->figures.start == address && pe->core != NULL && pe->state == PE_ABSENT) {
            pe->cycles = mesh->now;
            races_start(pe);
            pe_reset(pe);
        }
    }
}

static void write_register(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    struct page *page = device;
    const uint32_t address = page->address + offset;
    page->words[offset / 4] = value;
    races_register(pe, &page->views[offset / 4], true);
    timer_write(pe, address);
    if (pe->number == pe->mesh->root) {
        uart_write(&pe->mesh->uart, address - (uint32_t)pe->mesh->figures.uart_base, value);
    }
    if (restarts(pe->mesh, address, value)) {
        stock_restart(pe);
    }
    if (has_rule(pe->mesh, RULE_START, address)) {
        start_at(pe->mesh, value);
    }
}

/* The watchpoint unit of a Cortex-M. The cycle counter always runs. */
static uint32_t read_watchpoints(struct pe *pe, void *device, uint32_t offset)
{
    (void)device;
    return offset == 0 ? COMPARATORS : offset == 4 ? (uint32_t)blocks_time(pe) : 0;
}

static void write_watchpoints(struct pe *pe, void *device, uint32_t offset, uint32_t value)
{
    (void)pe, (void)device, (void)offset, (void)value;
}

/* The page of registers at an address, created if absent. 0: too many pages. */
static struct page *page_at(struct mesh *mesh, uint32_t address)
{
    const uint32_t first = address / PAGE_BYTES * PAGE_BYTES;
    for (uint32_t i = 0; i < mesh->page_count; i++) {
        if (mesh->pages[i]->address == first) {
            return mesh->pages[i];
        }
    }
    struct page *page = mesh->page_count < MOST_PAGES ? needed(calloc(1, sizeof *page)) : NULL;
    if (page != NULL) {
        page->address = first;
        mesh->pages[mesh->page_count++] = page;
    }
    return page;
}

/* Create all pages named in the board file, once. */
static bool make_pages(struct mesh *mesh)
{
    bool made = page_at(mesh, (uint32_t)mesh->figures.uart_base) != NULL;
    if (mesh->figures.timer_count != NOWHERE_AT) {
        made = made && page_at(mesh, (uint32_t)mesh->figures.timer_base + mesh->figures.timer_count) != NULL;
    }
    for (uint32_t i = 0; i < mesh->rule_count; i++) {
        made = made && page_at(mesh, mesh->rules[i].address) != NULL;
    }
    return made;
}

const char *stock_attach(struct pe *pe)
{
    struct mesh *mesh = pe->mesh;
    if (!mesh->figures.stock) {
        return NULL;
    }
    const char *complaint = make_pages(mesh) ? NULL : "the board has too many pages of registers";
    for (uint32_t i = 0; i < mesh->page_count && complaint == NULL; i++) {
        struct page *page = mesh->pages[i];
        const bool bytes = mesh->figures.uart_bytes && mesh->figures.uart_base - page->address < PAGE_BYTES;
        const struct bus_port port = {NULL, page, read_register, write_register, NULL, bytes, true, 0};
        complaint = bus_attach(pe, page->address, PAGE_BYTES, port);
    }
    if (!pe->riscv && complaint == NULL) {
        const struct bus_port port = {NULL, NULL, read_watchpoints, write_watchpoints, NULL, false, false, 0};
        complaint = bus_attach(pe, WATCHPOINTS, PAGE_BYTES, port);
    }
    return complaint;
}

void stock_free(struct mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->page_count; i++) {
        for (uint32_t word = 0; word < PAGE_BYTES / 4; word++) {
            clocks_let_go(&mesh->pages[i]->views[word]);
        }
        free(mesh->pages[i]);
    }
}
