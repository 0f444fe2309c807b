/* SPDX-License-Identifier: GPL-2.0-only
 *
 * A plan of faults in packets, PEs, links, memories and the power supply, each at a cycle or with a packet. */
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "need.h"
#include "noc.h"

static void flip_sram(struct mesh *mesh, const struct injection *injection)
{
    struct pe *pe = &mesh->pes[injection->pe];
    pe->sram[injection->address] ^= (uint8_t)(1U << injection->bit);
    blocks_forget(pe, injection->address, injection->address + 1);
}

/* Inject a fault outside packets. */
static void strike(struct mesh *mesh, const struct injection *injection)
{
    switch ((enum injection_kind)injection->kind) {
    case INJECT_KILL_PE:
        pe_kill(&mesh->pes[injection->pe]);
        break;
    case INJECT_KILL_LINK:
        noc_set_dead(mesh, injection->pe, injection->other);
        break;
    case INJECT_STALL:
        dma_stall(&mesh->pes[injection->pe], mesh->now + injection->cycles);
        break;
    case INJECT_FLIP_SRAM:
        flip_sram(mesh, injection);
        break;
    case INJECT_POWER:
        mesh->end = END_POWER;
        break;
    default:
        break;
    }
}

static uint32_t draw(struct mesh *mesh)
{
    mesh->chance ^= mesh->chance << 13;
    mesh->chance ^= mesh->chance >> 17;
    mesh->chance ^= mesh->chance << 5;
    return mesh->chance;
}

static void harm(struct transfer *transfer, const struct injection *injection)
{
    switch ((enum injection_kind)injection->kind) {
    case INJECT_DROP:
        transfer->harm.lost = true;
        break;
    case INJECT_DUPLICATE:
        transfer->harm.again_after = injection->cycles > 0 ? injection->cycles : 1;
        break;
    case INJECT_DELAY:
        transfer->harm.late_by = injection->cycles;
        break;
    case INJECT_FLIP:
        transfer->harm.flips = true;
        transfer->harm.bit = injection->bit != NEVER ? injection->bit : draw(transfer->owner->mesh);
        break;
    default:
        strike(transfer->owner->mesh, injection);
        return;
    }
    transfer->harm.place = injection->to;
    transfer->harm.hop = injection->hop;
    transfer->harm.part = injection->part;
}

/* ---- at a cycle ---- */

uint64_t inject_next(const struct mesh *mesh)
{
    uint64_t next = NEVER;
    for (size_t i = 0; i < mesh->injection_count; i++) {
        const struct injection *each = &mesh->injections[i];
        next = each->times == 0 && each->at < next ? each->at : next;
    }
    return next;
}

/* Inject all faults due at `time`, the present cycle. */
void inject_due(struct mesh *mesh, uint64_t time)
{
    mesh->now = time;
    for (size_t i = 0; i < mesh->injection_count; i++) {
        struct injection *each = &mesh->injections[i];
        if (each->times == 0 && each->at <= time) {
            each->times++;
            strike(mesh, each);
        }
    }
}

/* ---- with a packet ---- */

static bool goes_to(const struct transfer *transfer, uint32_t to)
{
    for (uint32_t i = 0; i < transfer->destination_count; i++) {
        if (to == ANY_PE || transfer->destinations[i].pe == to) {
            return true;
        }
    }
    return false;
}

static bool matches(const struct injection *injection, const struct transfer *transfer)
{
    const bool waits_for_packets = injection->packet != NEVER || injection->chance != 0;
    const bool needs_bytes = injection->kind == INJECT_FLIP;
    return waits_for_packets && (injection->from == ANY_PE || injection->from == transfer->source.pe) &&
           (injection->tag == ANY_TAG || injection->tag == transfer->tag) && goes_to(transfer, injection->to) &&
           (!needs_bytes || (transfer->rows > 0 && transfer->row_bytes > 0));
}

/* Inject faults into a packet on the point of leaving its source. */
void inject_packet(struct mesh *mesh, struct transfer *transfer)
{
    for (size_t i = 0; i < mesh->injection_count; i++) {
        struct injection *each = &mesh->injections[i];
        if (!matches(each, transfer)) {
            continue;
        }
        const bool chosen = each->packet != NEVER ? each->packet == each->seen : draw(mesh) < each->chance;
        each->seen++;
        if (chosen) {
            each->times++;
            harm(transfer, each);
        }
    }
}

void mesh_inject(struct mesh *mesh, const struct injection *injections, uint32_t count, uint32_t seed)
{
    mesh->injections = needed(calloc(count + 1, sizeof *injections));
    memcpy(mesh->injections, injections, count * sizeof *injections);
    mesh->injection_count = count;
    mesh->chance = seed != 0 ? seed : 1;
}
