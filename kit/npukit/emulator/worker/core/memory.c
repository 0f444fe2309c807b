/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The SRAM of all PEs. PEs with the same image share its pages until they write to them, where the system can do that. */
#ifdef __linux__
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>
#endif

#include <stdlib.h>
#include <string.h>

#include "api.h"

static size_t all_bytes(const struct mesh *mesh)
{
    return (size_t)mesh->pe_count * mesh->figures.sram_bytes;
}

#ifdef __linux__

bool memory_create(struct mesh *mesh)
{
    void *memory = mmap(NULL, all_bytes(mesh), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mesh->sram = memory == MAP_FAILED ? NULL : memory;
    return mesh->sram != NULL;
}

void memory_free(struct mesh *mesh)
{
    munmap(mesh->sram, all_bytes(mesh));
}

/* A file in memory with what a PE's SRAM holds, or -1. */
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

bool memory_create(struct mesh *mesh)
{
    mesh->sram = aligned_alloc(PAGE_BYTES, all_bytes(mesh)); /* Unicorn maps whole pages */
    if (mesh->sram != NULL) {
        memset(mesh->sram, 0, all_bytes(mesh));
    }
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

/* The other PEs are to begin with what the first one's SRAM holds. Before any of them runs. */
void mesh_share(struct mesh *mesh, const uint32_t *pes, uint32_t count)
{
    const struct pe *first = &mesh->pes[pes[0]];
    const int file = copy_to_file(first);
    for (uint32_t i = 0; i < count; i++) {
        const struct pe *each = &mesh->pes[pes[i]];
        if (!map(each, file) && each != first) {
            memcpy(each->sram, first->sram, mesh->figures.sram_bytes);
        }
    }
    if (file >= 0) {
        close(file);
    }
}
