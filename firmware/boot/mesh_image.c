/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh_image.h"

#include <stdbool.h>
#include <stddef.h>

#include "flash.h"
#include "flash_board.h"
#include "slots.h"
#include "string.h"

enum { MAGIC = 0x4D4B504E, FORMAT = 1, WORD = 4 };

_Static_assert(sizeof(struct mesh_header) == 84, "nine words, a name, a build");
_Static_assert(sizeof(struct mesh_overlay) == 16, "four words");

struct mesh_tables mesh_image_tables(uint32_t offset)
{
    struct mesh_tables tables;
    tables.header = (const struct mesh_header *)(const void *)flash_at(offset);
    tables.programs = (const struct mesh_program *)(tables.header + 1);
    tables.segments = (const struct mesh_segment *)(tables.programs + tables.header->programs);
    tables.pes = (const struct mesh_pe *)(tables.segments + tables.header->segments);
    tables.overlays = (const struct mesh_overlay *)(tables.pes + tables.header->pes);
    return tables;
}

static bool tables_fit(const struct mesh_header *header, uint32_t bytes)
{
    const uint64_t tables = (uint64_t)header->programs * sizeof(struct mesh_program) +
                            (uint64_t)header->segments * sizeof(struct mesh_segment) +
                            (uint64_t)header->pes * sizeof(struct mesh_pe) +
                            (uint64_t)header->overlays * sizeof(struct mesh_overlay);
    return header->magic == MAGIC && header->format == FORMAT && header->bytes == bytes &&
           tables <= bytes - sizeof *header;
}

static bool segment_fits(const struct mesh_segment *segment, uint32_t bytes)
{
    return (segment->address | segment->bytes | segment->offset) % WORD == 0 &&
           (uint64_t)segment->address + segment->bytes <= BOARD_SRAM_BYTES &&
           (uint64_t)segment->offset + segment->bytes <= bytes;
}

static bool programs_fit(const struct mesh_tables *tables)
{
    const struct mesh_header *header = tables->header;
    for (uint32_t i = 0; i < header->segments; i++) {
        if (!segment_fits(&tables->segments[i], header->bytes)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < header->programs; i++) {
        if ((uint64_t)tables->programs[i].first + tables->programs[i].count > header->segments) {
            return false;
        }
    }
    return true;
}

/* Number of copies into the root PE's SRAM. The boot controller makes FLASH_MOST_COPIES at most. */
static uint32_t copies_to_root(const struct mesh_tables *tables)
{
    uint32_t copies = 0;
    for (uint32_t i = 0; i < tables->header->pes; i++) {
        if (tables->pes[i].pe == BOARD_ROOT_PE) {
            copies += tables->programs[tables->pes[i].program].count;
        }
    }
    for (uint32_t i = 0; i < tables->header->overlays; i++) {
        copies += tables->overlays[i].pe == BOARD_ROOT_PE;
    }
    return copies;
}

static bool pes_fit(const struct mesh_tables *tables)
{
    const struct mesh_header *header = tables->header;
    for (uint32_t i = 0; i < header->pes; i++) {
        const struct mesh_pe *each = &tables->pes[i];
        if (each->pe >= BOARD_PES || each->program >= header->programs || (i > 0 && each->pe <= each[-1].pe)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < header->overlays; i++) {
        if (tables->overlays[i].pe >= BOARD_PES || !segment_fits(&tables->overlays[i].segment, header->bytes)) {
            return false;
        }
    }
    const uint32_t copies = copies_to_root(tables);
    return copies > 0 && copies <= FLASH_MOST_COPIES;
}

static bool is_for_this_board(const struct mesh_header *header)
{
    static const char name[MESH_NAME_BYTES] = BOARD_NAME;
    return header->board_pes == BOARD_PES && header->board_sram_bytes == BOARD_SRAM_BYTES &&
           memcmp(header->board, name, MESH_NAME_BYTES) == 0;
}

enum image_verdict mesh_image_check(uint32_t offset, uint32_t bytes)
{
    if (bytes < sizeof(struct mesh_header) || bytes % WORD != 0) {
        return IMAGE_MALFORMED;
    }
    const struct mesh_header *header = (const struct mesh_header *)(const void *)flash_at(offset);
    if (!tables_fit(header, bytes)) {
        return IMAGE_MALFORMED;
    }
    if (!is_for_this_board(header)) {
        return IMAGE_FOREIGN;
    }
    const struct mesh_tables tables = mesh_image_tables(offset);
    return programs_fit(&tables) && pes_fit(&tables) ? IMAGE_GOOD : IMAGE_MALFORMED;
}
