/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Layers alone: the core repeats the code of a layer, between two instructions, with other bytes in the layer's inputs
 * each time. The outputs are kept. After the last case the core continues. */
#include <stdlib.h>
#include <string.h>

#include "api.h"

enum { MOST_REGISTERS = 31 };

struct alone {
    struct alone_layer *layers;
    struct alone_place *places; /* of the next or running layer */
    uint8_t *given, *made; /* the next input bytes; the output bytes so far */
    void *first_place, *first_given;
    uint32_t begin, end, count, done, cases;
    size_t made_bytes;
    uint32_t registers[MOST_REGISTERS];
};

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes + 1);
    memcpy(to, from, bytes);
    return to;
}

static size_t size_of(const struct alone_place *places, uint32_t count)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += places[i].bytes;
    }
    return bytes;
}

void mesh_alone(struct mesh *mesh, uint32_t number, struct alone_span span, const struct alone_layer *layers,
                uint32_t count, const struct alone_place *places, const uint8_t *given)
{
    struct pe *pe = &mesh->pes[number];
    const uint32_t marks[] = {span.begin, span.end};
    size_t in = 0, out = 0, place_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        in += layers[i].cases * size_of(places + place_count, layers[i].inputs);
        out += layers[i].cases * size_of(places + place_count + layers[i].inputs, layers[i].outputs);
        place_count += layers[i].inputs + layers[i].outputs;
    }
    alone_free(pe);
    pe->alone_layers = calloc(1, sizeof *pe->alone_layers);
    mesh->alone_pes += count > 0 ? 1 : 0;
    *pe->alone_layers = (struct alone){.begin = span.begin, .end = span.end, .count = count};
    pe->alone_layers->layers = copy(layers, count * sizeof *layers);
    pe->alone_layers->places = pe->alone_layers->first_place = copy(places, place_count * sizeof *places);
    pe->alone_layers->given = pe->alone_layers->first_given = copy(given, in);
    pe->alone_layers->made = malloc(out + 1);
    for (int i = 0; i < 2; i++) {
        if (!trace_is_marked(pe, marks[i])) {
            trace_mark(pe, &marks[i], 1);
        }
    }
}

size_t mesh_alone_take(struct mesh *mesh, uint32_t number, uint8_t *data, size_t room)
{
    const struct alone *alone = mesh->pes[number].alone_layers;
    const size_t bytes = alone == NULL ? 0 : alone->made_bytes < room ? alone->made_bytes : room;
    if (bytes > 0) {
        memcpy(data, alone->made, bytes);
    }
    return bytes;
}

/* r0-r12, sp and lr, or x1-x31. */
static int register_name(const struct pe *pe, int which)
{
    static const int last[] = {UC_ARM_REG_SP, UC_ARM_REG_LR};
    if (pe->riscv) {
        return UC_RISCV_REG_X0 + 1 + which;
    }
    return which < 13 ? UC_ARM_REG_R0 + which : last[which - 13];
}

static int register_count(const struct pe *pe)
{
    return pe->riscv ? 31 : 15;
}

static void begins(struct pe *pe, struct alone *alone, const struct alone_layer *layer)
{
    for (int i = 0; i < register_count(pe) && alone->cases == 0; i++) {
        alone->registers[i] = pe_register(pe, register_name(pe, i));
    }
    for (uint32_t i = 0; i < layer->inputs; i++) {
        const struct alone_place *place = &alone->places[i];
        if (is_memory(pe, place->address, place->bytes)) {
            memcpy(pe->sram + place_of(pe, place->address), alone->given, place->bytes);
            shadow_written(pe, place->address, place->bytes);
        }
        alone->given += place->bytes;
    }
}

static void ends(struct pe *pe, struct alone *alone, const struct alone_layer *layer)
{
    for (uint32_t i = 0; i < layer->outputs && layer->cases > 0; i++) {
        const struct alone_place *place = &alone->places[layer->inputs + i];
        if (is_memory(pe, place->address, place->bytes)) {
            memcpy(alone->made + alone->made_bytes, pe->sram + place_of(pe, place->address), place->bytes);
        }
        alone->made_bytes += place->bytes;
    }
    if (++alone->cases < layer->cases) {
        pe->stop = STOP_REPEAT;
        pe->mesh->unicorn->emu_stop(pe->core);
        return;
    }
    alone->places += layer->inputs + layer->outputs;
    alone->cases = 0;
    alone->done++;
    pe->mesh->alone_pes -= alone->done == alone->count ? 1 : 0;
}

/* The PE has reached a marked instruction. */
void alone_at(struct pe *pe, uint32_t address)
{
    struct alone *const alone = pe->alone_layers;
    if (alone == NULL || alone->done >= alone->count) {
        return;
    }
    const struct alone_layer *const layer = &alone->layers[alone->done];
    if (address == alone->begin && layer->cases > 0) {
        begins(pe, alone, layer);
    } else if (address == alone->end) {
        ends(pe, alone, layer);
    }
}

/* Return to the start of the layer, with the registers that the core had there. */
void alone_repeat(struct pe *pe)
{
    for (int i = 0; i < register_count(pe); i++) {
        pe->mesh->unicorn->reg_write(pe->core, register_name(pe, i), &pe->alone_layers->registers[i]);
    }
    blocks_jump(pe, pe->alone_layers->begin);
}

void alone_free(struct pe *pe)
{
    if (pe->alone_layers != NULL) {
        pe->mesh->alone_pes -= pe->alone_layers->done < pe->alone_layers->count ? 1 : 0;
        free(pe->alone_layers->layers);
        free(pe->alone_layers->first_place);
        free(pe->alone_layers->first_given);
        free(pe->alone_layers->made);
        free(pe->alone_layers);
        pe->alone_layers = NULL;
    }
}
