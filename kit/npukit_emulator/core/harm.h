/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The last messages (notes.c), and planned faults (inject.c). */
#ifndef HARM_H
#define HARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh;
struct transfer;

/* notes.c: the last messages. */
enum note_kind { NOTE_SENT, NOTE_ARRIVED, NOTE_LOST, NOTE_LATE, NOTE_AGAIN, NOTE_DAMAGED };

struct note {
    uint64_t time;
    uint32_t kind;
    uint32_t owner; /* PE whose DMA moves the message */
    uint32_t from, to;
    uint32_t address; /* of the bytes at the destination */
    uint32_t bytes;
    uint32_t flag;
    uint32_t tag;
};

enum { NOTES = 1024 };

void notes_add(struct mesh *mesh, struct note note);

/* inject.c: planned faults. */

enum injection_kind {
    INJECT_DROP,
    INJECT_DUPLICATE,
    INJECT_DELAY,
    INJECT_FLIP,
    INJECT_KILL_PE,
    INJECT_KILL_LINK,
    INJECT_STALL,
    INJECT_FLIP_SRAM,
    INJECT_POWER,
};

/* A fault of the plan. It strikes at a cycle or with a packet: either packet number `packet` of the matching packets,
 * or each of them by chance. `hop`: number of the struck link, modulo the links of the way. `part`: number of the
 * struck packet of the message, modulo its packets. NEVER, ANY_PE and ANY_TAG stand for fields left out. */
struct injection {
    uint64_t at, packet, cycles, bit, hop, part;
    uint32_t kind, pe, other, from, to, tag, address;
    uint32_t chance; /* probability times 2^32 */
    uint32_t times;  /* number of strikes, counted by inject.c */
    uint64_t seen;   /* number of matching packets seen */
};

#define ANY_PE UINT32_MAX
#define ANY_TAG UINT32_MAX

uint64_t inject_next(const struct mesh *mesh);
void inject_due(struct mesh *mesh, uint64_t time);
void inject_packet(struct mesh *mesh, struct transfer *transfer);

#endif
