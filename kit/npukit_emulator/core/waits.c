/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Wait cycles of memories that do not answer at once, such as flash. A memory is read by lines, and the lines read last
 * are kept in a cache. Loads and stores use the code's cache or a cache of their own. A line outside the cache costs
 * the memory's wait cycles. */
#include <stdlib.h>

#include "mesh.h"

enum { NO_LINE = 0 }; /* tag of an empty place; other tags are line numbers plus one */

struct cache {
    const struct memory *memory;
    struct pe *pe;
    uint32_t sets, ways;
    uint32_t last; /* tag of the last access */
    uint32_t next_cycles; /* wait cycles of a line directly after the last line */
    uint32_t *tags; /* of each set, the most recently used first */
};

/* Access a line. Returns the wait cycles. */
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

/* Create a memory's caches: for code, then for data. */
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

/* Empty the caches at reset. */
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
