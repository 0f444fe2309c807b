/* SPDX-License-Identifier: Apache-2.0 */
/* The mesh image: each distinct program once, and which PE runs which (docs/flash.md). */
#ifndef MESH_IMAGE_H
#define MESH_IMAGE_H

#include <stdint.h>

#include "image.h"

enum { MESH_NAME_BYTES = 32, MESH_BUILD_BYTES = 16 };

struct mesh_header {
    uint32_t magic;
    uint32_t format;
    uint32_t bytes;
    uint32_t board_pes;
    uint32_t board_sram_bytes;
    uint32_t programs;
    uint32_t segments;
    uint32_t pes;
    uint32_t overlays;
    char board[MESH_NAME_BYTES];
    uint8_t build[MESH_BUILD_BYTES];
};

/* A run of segments. */
struct mesh_program {
    uint32_t first;
    uint32_t count;
};

/* Bytes for an address in SRAM; where they are, from the start of the mesh image. */
struct mesh_segment {
    uint32_t address;
    uint32_t bytes;
    uint32_t offset;
};

struct mesh_pe {
    uint32_t pe;
    uint32_t program;
};

/* Bytes that one PE has in place of its program's. */
struct mesh_overlay {
    uint32_t pe;
    struct mesh_segment segment;
};

/* The tables of a mesh image, in this order behind its header. */
struct mesh_tables {
    const struct mesh_header *header;
    const struct mesh_program *programs;
    const struct mesh_segment *segments;
    const struct mesh_pe *pes;
    const struct mesh_overlay *overlays;
};

/* Whether the mesh image at this place in the flash is whole, consistent, and for this board. */
enum image_verdict mesh_image_check(uint32_t offset, uint32_t bytes);

/* The tables of one that is. */
struct mesh_tables mesh_image_tables(uint32_t offset);

#endif
