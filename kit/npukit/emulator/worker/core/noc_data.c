/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What packets carry: the bytes as they leave the source, and as they come to lie at their destinations. */
#include <stdlib.h>
#include <string.h>

#include "noc_state.h"

/* A destination whose last byte comes in. */
struct arrival {
    struct transfer *transfer;
    uint32_t destination;
    bool again; /* for the second time */
};

static void on_arrival(struct mesh *mesh, void *subject);

static void take_data(struct mesh *mesh, struct transfer *transfer)
{
    uint64_t bytes;
    if (transfer->data != NULL) {
        return;
    }
    const uint8_t *memory = noc_memory(mesh, transfer->source.pe, &bytes);
    transfer->data = malloc((size_t)transfer->rows * transfer->row_bytes + 1);
    for (uint32_t row = 0; row < transfer->rows; row++) {
        memcpy(transfer->data + (size_t)row * transfer->row_bytes,
               memory + transfer->source.address + (int64_t)row * transfer->source_stride, transfer->row_bytes);
    }
}

/* Whether a row would come to lie on code that runs: then the PE that sends it is at fault. */
static bool writes_code(struct mesh *mesh, const struct transfer *transfer, struct place to, int64_t address)
{
    const uint32_t end = (uint32_t)address + transfer->row_bytes;
    if (noc_is_dram(to.pe) || transfer->row_bytes == 0 || !watch_is_code(mesh, to.pe, (uint32_t)address, end)) {
        return false;
    }
    mesh->fault_other = to.pe;
    pe_fault_at(transfer->owner, FAULT_DMA_CODE, (uint32_t)address, transfer->owner->pc);
    return true;
}

static void put_data(struct mesh *mesh, const struct transfer *transfer, struct place to)
{
    uint64_t bytes;
    uint8_t *memory = noc_memory(mesh, to.pe, &bytes);
    for (uint32_t row = 0; row < transfer->rows; row++) {
        const int64_t address = to.address + (int64_t)row * transfer->destination_stride;
        if (writes_code(mesh, transfer, to, address)) {
            return;
        }
        memcpy(memory + address, transfer->data + (size_t)row * transfer->row_bytes, transfer->row_bytes);
        if (!noc_is_dram(to.pe)) {
            blocks_forget(&mesh->pes[to.pe], (uint32_t)address, (uint32_t)address + transfer->row_bytes);
        }
    }
}

static void release(struct transfer *transfer)
{
    if (transfer->source_done && transfer->on_the_way == 0) {
        free(transfer->data);
        free(transfer->destinations);
        free(transfer);
    }
}

void noc_note(struct mesh *mesh, enum note_kind kind, const struct transfer *transfer, struct place to)
{
    const uint32_t bytes = transfer->rows * transfer->row_bytes;
    notes_add(mesh, (struct note){0, kind, transfer->owner->number, transfer->source.pe, to.pe, to.address, bytes,
                                  transfer->destination_flag, transfer->tag});
}

/* The copy of the data that goes to a place, with what a plan of faults makes of it. */
static void deliver(struct mesh *mesh, struct transfer *transfer, struct place place, bool harmed)
{
    const struct harm *harm = &transfer->harm;
    const uint64_t bits = 8 * (uint64_t)transfer->rows * transfer->row_bytes;
    const bool flips = harmed && harm->flips && bits > 0;
    const uint64_t bit = flips ? harm->bit % bits : 0;
    take_data(mesh, transfer);
    transfer->data[bit / 8] ^= flips ? (uint8_t)(1U << bit % 8) : 0U;
    noc_note(mesh, flips ? NOTE_DAMAGED : NOTE_ARRIVED, transfer, place);
    put_data(mesh, transfer, place);
    trace_record(mesh, (struct trace_record){transfer->left_at, mesh->now, TRACE_TRANSFER, transfer->owner->number,
                                             transfer->source.pe, place.pe, transfer->rows * transfer->row_bytes, 0});
    transfer->data[bit / 8] ^= flips ? (uint8_t)(1U << bit % 8) : 0U;
    noc_count_flag(mesh, place.pe, transfer->destination_flag);
}

/* Whether the arrival comes once more. */
static bool comes_again(struct mesh *mesh, struct arrival *arrival, struct place place)
{
    const struct transfer *transfer = arrival->transfer;
    if (transfer->harm.again_after == 0 || arrival->again) {
        return false;
    }
    arrival->again = true;
    noc_note(mesh, NOTE_AGAIN, transfer, place);
    events_post(mesh, mesh->now + transfer->harm.again_after, transfer->owner->number, on_arrival, arrival);
    return true;
}

static void on_arrival(struct mesh *mesh, void *subject)
{
    struct arrival *arrival = subject;
    struct transfer *transfer = arrival->transfer;
    const struct place place = transfer->destinations[arrival->destination];
    const bool harmed = transfer->harm.place == ANY_PE || transfer->harm.place == place.pe;
    if (harmed && transfer->harm.lost) {
        noc_note(mesh, NOTE_LOST, transfer, place);
    } else {
        deliver(mesh, transfer, place, harmed);
    }
    if (harmed && comes_again(mesh, arrival, place)) {
        return;
    }
    transfer->on_the_way--;
    free(arrival);
    release(transfer);
}

static void on_source_done(struct mesh *mesh, void *subject)
{
    struct transfer *transfer = subject;
    take_data(mesh, transfer);
    transfer->source_done = true;
    dma_source_done(transfer);
    release(transfer);
}

void noc_arrive_at(struct mesh *mesh, struct transfer *transfer, uint32_t destination, uint64_t time)
{
    struct arrival *arrival = malloc(sizeof *arrival);
    *arrival = (struct arrival){transfer, destination, false};
    events_post(mesh, time, transfer->owner->number, on_arrival, arrival);
}

void noc_source_done_at(struct mesh *mesh, struct transfer *transfer, uint64_t time)
{
    events_post(mesh, time, transfer->owner->number, on_source_done, transfer);
}
