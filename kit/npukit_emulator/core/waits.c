/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Waits: a memory that does not answer at once, such as flash, is read a line at a time; lines read last are kept in a
 * cache. Loads and stores have that of the code, or their own. What is in no line costs the memory's waits. */
#include <stdlib.h>

#include "mesh.h"

enum { NO_LINE = 0 }; /* of tags, which are numbers of lines plus one */

struct cache {
    const struct memory *memory;
    struct pe *pe;
    uint32_t sets, ways;
    uint32_t last; /* the tag that was asked for last */
    uint32_t next_cycles; /* of the line behind it */
    uint32_t *tags; /* of each set, the one used last first */
};

/* The cycles that an access to the line takes longer. */
static uint32_t touch(struct cache *cache, uint32_t line)
{
    const uint32_t tag = line + 1;
    if (tag == cache->last) {
        return 0;
    }
    const bool follows = tag == cache->last + 1;
    cache->last = tag;
    uint32_t *set = cache->tags + (size_t)(line % cache->sets) * cache->ways, moved = tag, way = 0;
    for (; way < cache->ways && moved != NO_LINE; way++) {
        const uint32_t here = set[way];
        set[way] = moved;
        if (here == tag) {
            return 0;
        }
        moved = here;
    }
    return follows ? cache->next_cycles : cache->memory->wait_cycles;
}

uint32_t waits_fetch(struct cache *cache, uint32_t address, uint32_t bytes)
{
    const uint32_t line_bytes = cache->memory->line_bytes;
    uint32_t waits = 0;
    for (uint32_t line = address / line_bytes; line <= (address + bytes - 1) / line_bytes; line++) {
        waits += touch(cache, line);
    }
    return waits;
}

static void on_access(uc_engine *core, uc_mem_type type, uint64_t address, int size, int64_t value, void *user)
{
    struct cache *cache = user;
    (void)core, (void)type, (void)value;
    cache->pe->cycles += waits_fetch(cache, (uint32_t)address, (uint32_t)size);
    shadow_leave_it_block(cache->pe);
}

static bool create(struct cache *cache, struct pe *pe, const struct memory *memory, uint32_t lines, uint32_t next)
{
    const uint32_t ways = memory->ways < lines ? memory->ways : lines;
    *cache = (struct cache){memory, pe, lines / ways, ways, NO_LINE, next, calloc(lines, sizeof(uint32_t))};
    return cache->tags != NULL;
}

static bool watch(struct cache *cache, uint64_t from)
{
    uc_hook hook;
    const struct unicorn *unicorn = cache->pe->mesh->unicorn;
    return unicorn->hook_add(cache->pe->core, &hook, UC_HOOK_MEM_READ | UC_HOOK_MEM_WRITE, (void *)on_access, cache,
                             from, from + cache->memory->bytes - 1) == UC_ERR_OK;
}

/* The caches of a memory: of what is read as code, and behind it of what is read as data. */
static bool attach(struct pe *pe, uint32_t number)
{
    const struct memory *memory = &pe->mesh->figures.memories[number];
    struct cache *code = &pe->caches[2 * number], *data = memory->data_lines > 0 ? code + 1 : code;
    pe->fetches = number == 0 ? code : pe->fetches;
    return create(code, pe, memory, memory->lines, memory->next_cycles) &&
           (data == code || create(data, pe, memory, memory->data_lines, memory->wait_cycles)) && watch(data, pe->memory_bases[number]);
}

bool waits_watch(struct pe *pe)
{
    const struct figures *figures = &pe->mesh->figures;
    bool done = true;
    for (uint32_t i = 0; i < figures->memory_count; i++) {
        if (figures->memories[i].wait_cycles > 0) {
            pe->caches = pe->caches ? pe->caches : calloc(2 * figures->memory_count, sizeof *pe->caches);
            done = done && pe->caches != NULL && attach(pe, i);
        }
    }
    return done;
}

/* At reset no line is known. */
void waits_forget(struct pe *pe)
{
    for (uint32_t i = 0; i < 2 * pe->mesh->figures.memory_count && pe->caches != NULL; i++) {
        struct cache *cache = &pe->caches[i];
        cache->last = NO_LINE;
        for (uint32_t line = 0; line < cache->sets * cache->ways; line++) {
            cache->tags[line] = NO_LINE;
        }
    }
}

void waits_free(struct pe *pe)
{
    for (uint32_t i = 0; i < 2 * pe->mesh->figures.memory_count && pe->caches != NULL; i++) {
        free(pe->caches[i].tags);
    }
    free(pe->caches);
}
