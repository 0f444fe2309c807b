/* SPDX-License-Identifier: GPL-2.0-only */
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "need.h"
#include "noc.h"

static const char *missing; /* name of a figure absent from the list; 0: none */

void *grow(void *array, size_t *room, size_t wanted, size_t item)
{
    if (wanted <= *room) {
        return array;
    }
    *room = wanted < 8 ? 8 : 2 * wanted;
    return needed(realloc(array, *room * item));
}

static uint64_t figure(const struct device_figure *figures, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(figures[i].name, name) == 0) {
            return (uint64_t)figures[i].value;
        }
    }
    missing = name;
    return 0;
}

static struct figures all_figures(const struct device_figure *list, uint32_t count)
{
#define WIDE(name) .name = figure(list, count, #name)
#define NARROW(name) .name = (uint32_t)figure(list, count, #name)
    return (struct figures){
        WIDE(clock_hz),
        WIDE(baud),
        NARROW(sram_bytes),
        NARROW(memory_count),
        NARROW(code_bytes),
        NARROW(start),
        NARROW(shared),
        NARROW(stock),
        NARROW(uart_receive),
        NARROW(uart_send),
        NARROW(uart_readable_at),
        NARROW(uart_readable),
        NARROW(uart_writable_at),
        NARROW(uart_writable),
        NARROW(uart_says_empty),
        NARROW(uart_says_full),
        NARROW(uart_bytes),
        NARROW(uart_receive_to),
        NARROW(uart_send_from),
        NARROW(timer_count),
        NARROW(timer_high),
        NARROW(timer_capture),
        NARROW(timer_down),
        WIDE(timer_hz),
        NARROW(receive_bytes),
        NARROW(chip_columns),
        NARROW(chip_rows),
        NARROW(hexagonal_torus),
        NARROW(columns),
        NARROW(rows),
        WIDE(timer_base),
        WIDE(noc_base),
        WIDE(uart_base),
        WIDE(events_base),
        WIDE(boot_base),
        WIDE(boot_window),
        WIDE(boot_bytes),
        WIDE(window_base),
        NARROW(port_bytes_per_cycle),
        NARROW(setup_cycles),
        NARROW(hop_cycles),
        NARROW(packet_flits),
        NARROW(buffer_packets),
        NARROW(border_packets),
        NARROW(chip_hop_cycles),
        NARROW(chip_links_per_border),
        NARROW(chip_link_bytes_per_100_cycles),
        WIDE(dram_bytes),
        NARROW(dram_bytes_per_cycle),
        NARROW(dram_latency_cycles),
        NARROW(dram_requests),
        NARROW(dram_burst_bytes),
        NARROW(dram_banks),
        NARROW(dram_row_bytes),
        NARROW(dram_row_cycles),
        NARROW(dram_refresh_interval),
        NARROW(dram_refresh_cycles),
        NARROW(flags),
        NARROW(seed),
    };
#undef WIDE
#undef NARROW
}

const char *mesh_missing_figure(void)
{
    return missing;
}

static bool create_pes(struct mesh *mesh)
{
    const struct figures *figures = &mesh->figures;
    mesh->pe_count = figures->chip_columns * figures->chip_rows * figures->columns * figures->rows;
    mesh->pes = calloc(mesh->pe_count, sizeof *mesh->pes);
    mesh->queue = calloc(mesh->pe_count, sizeof(struct pe *));
    if (mesh->pes == NULL || mesh->queue == NULL || !memory_create(mesh)) {
        return false;
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        mesh->pes[i].number = i;
        pe_create(&mesh->pes[i]);
    }
    return noc_create(mesh) == NULL;
}

struct mesh *mesh_new(const struct device_figure *figures, uint32_t count, const struct memory *memories,
                      const struct unicorn *functions)
{
    missing = NULL;
    struct mesh *mesh = calloc(1, sizeof *mesh);
    mesh->figures = all_figures(figures, count);
    memcpy(mesh->figures.memories, memories, mesh->figures.memory_count * sizeof *memories);
    mesh->unicorn = functions;
    return missing == NULL && create_pes(mesh) ? mesh : NULL;
}

void mesh_set_pe_dead(struct mesh *mesh, uint32_t pe)
{
    noc_set_pe_dead(mesh, pe);
}

void mesh_set_link_dead(struct mesh *mesh, uint32_t pe, uint32_t other)
{
    noc_set_dead(mesh, pe, other);
}

void mesh_set_core(struct mesh *mesh, uint32_t pe, uint32_t model, int riscv, uint32_t refill_cycles,
                   decode_function *decode)
{
    mesh->pes[pe].core_model = model;
    mesh->pes[pe].riscv = riscv;
    mesh->pes[pe].refill_cycles = mesh->pes[pe].core_refill_cycles = refill_cycles;
    mesh->pes[pe].decode = decode;
}

void mesh_set_memory(struct mesh *mesh, uint32_t pe, uint32_t bytes)
{
    mesh->pes[pe].memory_bytes[0] = bytes;
}

void mesh_set_root(struct mesh *mesh, uint32_t pe)
{
    mesh->root = pe;
}

const char *mesh_add_accelerator(struct mesh *mesh, uint64_t base, const struct device_model *model,
                                 const struct device_figure *figures, uint32_t count)
{
    if (mesh->accelerator_count == DEVICES_PER_PE) {
        return "the board has more accelerators than the emulator can attach";
    }
    mesh->accelerators[mesh->accelerator_count++] = 
        (struct accelerator){base, model, figures, count, NULL, 0x1000, NO_INTERRUPT, 0, 0};
    return NULL;
}

/* Of the accelerator added last: size of the registers, NVIC number or NO_INTERRUPT, memory of the device. */
void mesh_set_places(struct mesh *mesh, uint32_t register_bytes, uint32_t interrupt, uint64_t scratchpad_base,
                     uint32_t scratchpad_bytes)
{
    struct accelerator *accelerator = &mesh->accelerators[mesh->accelerator_count - 1];
    accelerator->register_bytes = register_bytes;
    accelerator->interrupt = interrupt;
    accelerator->scratchpad_base = scratchpad_base;
    accelerator->scratchpad_bytes = scratchpad_bytes;
}

/* The accelerator added last does the same as `model`, in the same cycles. */
void mesh_set_beside(struct mesh *mesh, const struct device_model *model)
{
    mesh->accelerators[mesh->accelerator_count - 1].beside = model;
}

/* Works of devices that were equal to the works of the models beside them. */
uint64_t mesh_compared(const struct mesh *mesh)
{
    return mesh->compared;
}

const char *mesh_set_network(struct mesh *mesh, const struct network_model *model, const struct device_figure *figures,
                             uint32_t count)
{
    return network_create(mesh, model, figures, count);
}

uint64_t mesh_messages(const struct mesh *mesh)
{
    return mesh->messages;
}

/* Returns 0 if the board has too many rules. */
int mesh_add_rule(struct mesh *mesh, uint32_t kind, uint32_t address, uint32_t value)
{
    if (mesh->rule_count == MOST_RULES) {
        return 0;
    }
    mesh->rules[mesh->rule_count++] = (struct rule){kind, address, value};
    return 1;
}

void mesh_set_lacking(struct mesh *mesh, uint32_t pe)
{
    mesh->pes[pe].lacking |= 1U << (mesh->accelerator_count - 1);
}

struct image *mesh_add_image(struct mesh *mesh, uint32_t stack_bottom, struct code_range code,
                             struct code_range arena)
{
    struct image *image = needed(calloc(1, sizeof *image));
    image->before = mesh->images;
    mesh->images = image;
    image->blocks = needed(malloc(mesh->figures.code_bytes / 2 * sizeof(struct block *)));
    for (uint32_t i = 0; i < mesh->figures.code_bytes / 2; i++) {
        image->blocks[i] = &unknown_block;
    }
    image->code_low = UINT32_MAX;
    image->stack_bottom = stack_bottom;
    image->code_from = code.from;
    image->code_to = code.to;
    image->arena_from = arena.from;
    image->arena_to = arena.to;
    return image;
}

void mesh_watch_calls(struct mesh *mesh, uint32_t pe, struct image *image, const uint32_t *entries, uint32_t count)
{
    calls_watch(&mesh->pes[pe], image, entries, count);
}

const char *mesh_power_up(struct mesh *mesh, uint32_t pe, struct image *image)
{
    return pe_power_up(&mesh->pes[pe], image);
}

void mesh_reset(struct mesh *mesh, uint32_t pe)
{
    pe_reset(&mesh->pes[pe]);
}

const char *mesh_add_flash(struct mesh *mesh, const struct device_figure *figures, uint32_t count, uint8_t *memory,
                           uint32_t cause)
{
#define WIDE(name) .name = figure(figures, count, #name)
#define NARROW(name) .name = (uint32_t)figure(figures, count, #name)
    const struct flash_figures all = {
        WIDE(base),
        WIDE(window),
        NARROW(bytes),
        NARROW(page_bytes),
        NARROW(loader_bytes),
        NARROW(once_bytes),
        NARROW(erase_cycles),
        NARROW(program_cycles),
        NARROW(copy_cycles_per_word),
    };
#undef WIDE
#undef NARROW
    flash_create(mesh, all, memory, cause);
    return missing == NULL ? NULL : "a figure of the flash is missing";
}

void mesh_load_flash(struct mesh *mesh)
{
    flash_load(mesh);
}

void mesh_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance)
{
    flash_cut_power(mesh, operation, chance);
}

int mesh_run(struct mesh *mesh, uint64_t until, int stop_at_output, double seconds)
{
    return schedule_run(mesh, until, stop_at_output != 0, seconds);
}

uint64_t mesh_now(const struct mesh *mesh)
{
    return mesh->now;
}

void mesh_send(struct mesh *mesh, const uint8_t *data, size_t count)
{
    uart_receive(mesh, data, count);
}

size_t mesh_take(struct mesh *mesh, uint8_t *data, size_t room)
{
    return uart_take(mesh, data, room);
}

static uint8_t *memory(struct mesh *mesh, uint32_t place, uint32_t address, size_t count)
{
    uint64_t bytes;
    if (!noc_pe_exists(mesh, place)) {
        return NULL;
    }
    if (place < mesh->pe_count) {
        const struct pe *pe = &mesh->pes[place];
        return is_memory(pe, address, count) ? pe->sram + place_of(pe, address) : NULL;
    }
    uint8_t *start = noc_memory(mesh, place, &bytes);
    return start != NULL && (uint64_t)address + count <= bytes ? start + address : NULL;
}

int mesh_read(struct mesh *mesh, uint32_t place, uint32_t address, uint8_t *data, size_t count)
{
    const uint8_t *from = memory(mesh, place, address, count);
    if (from != NULL) {
        memcpy(data, from, count);
    }
    return from != NULL;
}

int mesh_write(struct mesh *mesh, uint32_t place, uint32_t address, const uint8_t *data, size_t count)
{
    uint8_t *to = memory(mesh, place, address, count);
    if (to == NULL) {
        return 0;
    }
    memcpy(to, data, count);
    if (place < mesh->pe_count) {
        shadow_written(&mesh->pes[place], address, count);
        if (mesh->pes[place].races != NULL) {
            races_forget(&mesh->pes[place], address, (uint32_t)count);
        }
        blocks_forget(&mesh->pes[place], address, address + (uint32_t)count);
    }
    return 1;
}

static void power_down(struct pe *pe)
{
    if (pe->core != NULL) {
        pe->mesh->unicorn->close(pe->core);
    }
    devices_end(pe);
    free(pe->flags);
    free(pe->dma);
    free(pe->word_hooks);
    free(pe->instrumented);
    free(pe->port_uses);
    free(pe->calls);
    free(pe->marks);
    alone_free(pe);
    waits_free(pe);
}

static void free_image(struct image *image)
{
    for (struct block *block = image->learnt; block != NULL;) {
        struct block *before = block->before;
        free(block);
        block = before;
    }
    free(image->blocks);
    free(image->calls);
    free(image);
}

/* Free a board's large allocations, because a worker creates a new board at each restart. */
void mesh_free(struct mesh *mesh)
{
    side_by_side_end(mesh);
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        power_down(&mesh->pes[i]);
    }
    for (struct image *image = mesh->images; image != NULL;) {
        struct image *before = image->before;
        free_image(image);
        image = before;
    }
    network_end(mesh);
    noc_free(mesh);
    stock_free(mesh);
    free(mesh->pes[0].written);
    races_free(mesh);
    flash_free(mesh);
    trace_free(mesh);
    memory_free(mesh);
}
