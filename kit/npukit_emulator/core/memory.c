/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The SRAM of all PEs. PEs with the same image share pages until the first write, where the system supports it. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "need.h"

static size_t all_bytes(const struct mesh *mesh)
{
    return (size_t)mesh->pe_count * mesh->figures.sram_bytes;
}

#ifdef __linux__

static bool reserve(struct mesh *mesh)
{
    void *memory = mmap(NULL, all_bytes(mesh), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mesh->sram = memory == MAP_FAILED ? NULL : memory;
    return mesh->sram != NULL;
}

void memory_free(struct mesh *mesh)
{
    munmap(mesh->sram, all_bytes(mesh));
}

/* A file in memory with a copy of a PE's SRAM, or -1. */
static int copy_to_file(const struct pe *pe)
{
    const size_t bytes = pe->mesh->figures.sram_bytes;
    const int file = memfd_create("npukit-image", MFD_CLOEXEC);
    if (file >= 0 && write(file, pe->sram, bytes) != (ssize_t)bytes) {
        close(file);
        return -1;
    }
    return file;
}

static bool map(const struct pe *pe, int file)
{
    const size_t bytes = pe->mesh->figures.sram_bytes;
    const int way = MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE;
    return file >= 0 && mmap(pe->sram, bytes, PROT_READ | PROT_WRITE, way, file, 0) == pe->sram;
}

#else

enum { PAGE_BYTES = 4096 };

static bool reserve(struct mesh *mesh)
{
    mesh->sram = aligned_alloc(PAGE_BYTES, all_bytes(mesh)); /* Unicorn maps whole pages */
    return mesh->sram != NULL;
}

void memory_free(struct mesh *mesh)
{
    free(mesh->sram);
}

static int copy_to_file(const struct pe *pe)
{
    (void)pe;
    return -1;
}

static bool map(const struct pe *pe, int file)
{
    (void)pe, (void)file;
    return false;
}

static void close(int file)
{
    (void)file;
}

#endif

static void fill_at_random(uint8_t *memory, size_t bytes, uint32_t seed)
{
    uint32_t chance = seed * 2654435761U | 1U;
    for (size_t at = 0; at < bytes; at += sizeof chance) {
        chance ^= chance << 13;
        chance ^= chance >> 17;
        chance ^= chance << 5;
        memcpy(memory + at, &chance, sizeof chance);
    }
}

/* Copy the first PE's SRAM to all `pes`. */
static void copy_to_all(const struct pe *first, const struct pe *const *pes, size_t count)
{
    const int file = copy_to_file(first);
    for (size_t i = 0; i < count; i++) {
        if (!map(pes[i], file) && pes[i] != first) {
            memcpy(pes[i]->sram, first->sram, first->mesh->figures.sram_bytes);
        }
    }
    if (file >= 0) {
        close(file);
    }
}

/* Create the SRAM of all PEs, which must have none yet. At power-on every SRAM holds the same random bytes. */
bool memory_create(struct mesh *mesh)
{
    const struct pe **pes = calloc(mesh->pe_count, sizeof(struct pe *));
    if (pes == NULL || !reserve(mesh)) {
        free(pes);
        return false;
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        mesh->pes[i].mesh = mesh;
        mesh->pes[i].sram = mesh->sram + (size_t)i * mesh->figures.sram_bytes;
        pes[i] = &mesh->pes[i];
    }
    fill_at_random(mesh->sram, mesh->figures.sram_bytes, mesh->figures.seed);
    copy_to_all(pes[0], pes, mesh->pe_count);
    free(pes);
    return true;
}

/* Copy the first PE's SRAM to the others. Call before any of these PEs runs. */
void mesh_share(struct mesh *mesh, const uint32_t *numbers, uint32_t count)
{
    const struct pe **pes = needed(calloc(count, sizeof(struct pe *)));
    for (uint32_t i = 0; i < count; i++) {
        pes[i] = &mesh->pes[numbers[i]];
        shadow_share(pes[0], pes[i]);
    }
    if (pes != NULL && count > 0) {
        copy_to_all(pes[0], pes, count);
    }
    free(pes);
}
