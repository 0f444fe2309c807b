/* SPDX-License-Identifier: Apache-2.0 */
/* Mesh image: each distinct program once, and the program of each PE (docs/protocol.md). */
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

/* Segments `first` to `first` + `count` - 1. */
struct mesh_program {
    uint32_t first;
    uint32_t count;
};

/* Bytes for an address in SRAM, at `offset` from the start of the mesh image. */
struct mesh_segment {
    uint32_t address;
    uint32_t bytes;
    uint32_t offset;
};

struct mesh_pe {
    uint32_t pe;
    uint32_t program;
};

/* Bytes of one PE, in place of bytes of its program. */
struct mesh_overlay {
    uint32_t pe;
    struct mesh_segment segment;
};

/* Tables of a mesh image, in this order behind its header. */
struct mesh_tables {
    const struct mesh_header *header;
    const struct mesh_program *programs;
    const struct mesh_segment *segments;
    const struct mesh_pe *pes;
    const struct mesh_overlay *overlays;
};

/* Check that the mesh image at this offset in the flash is complete, consistent, and for this board. */
enum image_verdict mesh_image_check(uint32_t offset, uint32_t bytes);

/* Tables of a mesh image, after mesh_image_check(). */
struct mesh_tables mesh_image_tables(uint32_t offset);

#endif
