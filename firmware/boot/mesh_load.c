/* SPDX-License-Identifier: Apache-2.0 */
#include "mesh_load.h"

#include <stdbool.h>

#include "flash.h"
#include "flash_board.h"
#include "mesh_image.h"
#include "noc.h"
#include "pause.h"
#include "string.h"

enum { CHUNK_BYTES = 4096, FLAG = 0 };

/* More cycles than the last packet needs from here to its farthest destination: over 200 borders at a quarter of the
 * pace within a chip. */
enum { CYCLES_ON_THE_WAY = 100000 };

static _Alignas(16) uint8_t chunk[CHUNK_BYTES];
static _Alignas(16) struct noc_descriptor descriptor;
static struct noc_destination destinations[BOARD_PES];
static struct flash_copies copies;

static bool send(uint32_t count, uint32_t bytes)
{
    descriptor = (struct noc_descriptor){
        .kind = NOC_COPY,
        .options = NOC_MULTICAST,
        .source_pe = BOARD_ROOT_PE,
        .source = chunk,
        .destination_pe = (uint32_t)destinations,
        .destination = count,
        .row_bytes = (uint16_t)bytes,
        .rows = 1,
        .source_flag = FLAG,
        .destination_flag = NOC_NO_FLAG,
    };
    return noc_send(&descriptor) == 0 && noc_wait(FLAG, 1) == 0;
}

/* Send a segment to the first `count` destinations. */
static bool send_segment(uint32_t mesh, const struct mesh_segment *segment, uint32_t count)
{
    for (uint32_t at = 0; at < segment->bytes && count > 0; at += CHUNK_BYTES) {
        const uint32_t left = segment->bytes - at;
        const uint32_t bytes = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        memcpy(chunk, flash_at(mesh + segment->offset + at), bytes);
        for (uint32_t i = 0; i < count; i++) {
            destinations[i].address = segment->address + at;
        }
        if (!send(count, bytes)) {
            return false;
        }
    }
    return true;
}

/* List and arm the PEs of a program, except the root PE. */
static uint32_t list_destinations(const struct mesh_tables *tables, uint32_t program)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tables->header->pes; i++) {
        const struct mesh_pe *each = &tables->pes[i];
        if (each->program == program && each->pe != BOARD_ROOT_PE) {
            destinations[count++].pe = each->pe;
            flash_arm(each->pe);
        }
    }
    return count;
}

static bool send_programs(uint32_t mesh, const struct mesh_tables *tables)
{
    for (uint32_t i = 0; i < tables->header->programs; i++) {
        const struct mesh_program *program = &tables->programs[i];
        const uint32_t count = list_destinations(tables, i);
        for (uint32_t j = 0; j < program->count; j++) {
            if (!send_segment(mesh, &tables->segments[program->first + j], count)) {
                return false;
            }
        }
    }
    return true;
}

static bool is_same(const struct mesh_segment *one, const struct mesh_segment *other)
{
    return one->address == other->address && one->bytes == other->bytes && one->offset == other->offset;
}

/* Send adjacent overlays with equal segments to all their PEs at once. */
static bool send_overlays(uint32_t mesh, const struct mesh_tables *tables)
{
    const struct mesh_overlay *each = tables->overlays, *end = each + tables->header->overlays;
    while (each < end) {
        const struct mesh_segment *segment = &each->segment;
        uint32_t count = 0;
        for (; each < end && count < BOARD_PES && is_same(&each->segment, segment); each++) {
            destinations[count].pe = each->pe;
            count += each->pe != BOARD_ROOT_PE;
        }
        if (!send_segment(mesh, segment, count)) {
            return false;
        }
    }
    return true;
}

static void add_copy(uint32_t mesh, const struct mesh_segment *segment)
{
    copies.copies[copies.count++] =
        (struct flash_copy){mesh + segment->offset, segment->address, segment->bytes};
}

/* List the root PE's segments for the boot controller. Sending them would overwrite this running program. */
static void list_copies(uint32_t mesh, const struct mesh_tables *tables)
{
    copies.count = 0;
    for (uint32_t i = 0; i < tables->header->pes; i++) {
        const struct mesh_program *program = &tables->programs[tables->pes[i].program];
        for (uint32_t j = 0; tables->pes[i].pe == BOARD_ROOT_PE && j < program->count; j++) {
            add_copy(mesh, &tables->segments[program->first + j]);
        }
    }
    for (uint32_t i = 0; i < tables->header->overlays; i++) {
        if (tables->overlays[i].pe == BOARD_ROOT_PE) {
            add_copy(mesh, &tables->overlays[i].segment);
        }
    }
}

void mesh_load(uint32_t offset)
{
    const struct mesh_tables tables = mesh_image_tables(offset);
    list_copies(offset, &tables);
    if (send_programs(offset, &tables) && send_overlays(offset, &tables)) {
        pause_cycles(CYCLES_ON_THE_WAY);
        flash_start(&copies);
    }
}
