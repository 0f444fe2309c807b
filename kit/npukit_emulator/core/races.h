/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Races: two accesses of a byte without an order between them, at least one of them a store. Order comes only from
 * guarantees of the hardware manual: a doorbell, the end of work read by the core, a flag's count read by the core.
 * These order cores, work of accelerators, and messages. */
#ifndef RACES_H
#define RACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mesh;
struct pe;
struct place;
struct transfer;
struct device_host;

/* Progress of all PEs: a count per core, then a count per DMA engine. Views may share a row, which then must not
 * change. */
struct row;

/* A vector clock: the progress of all PEs known to a core, or known at a doorbell. `time`: the core's own doorbells,
 * and stores to other PEs' memories or to shared memory. `engine`: descriptors of the core's own DMA known to be read, with
 * their sources. */
struct view {
    struct row *row;
    uint32_t pe, time, engine;
};

/* races_clocks.c */
struct row *clocks_row(uint32_t pes);
struct view clocks_hold(struct view view);
void clocks_let_go(struct view *view);
void clocks_learn(struct view *own, const struct view *other, uint32_t pes);
uint32_t clocks_core(const struct view *view, uint32_t pe);
uint32_t clocks_engine(const struct view *view, uint32_t pe, uint32_t pes);

enum deed_kind {
    DEED_NONE,
    DEED_CORE,         /* a core's access to its own memory: no deed, the cell holds the core's time */
    DEED_FETCH,        /* a DMA engine reads a descriptor, its destinations and the source */
    DEED_LANDING,      /* a message's bytes are written */
    DEED_WORK,         /* a command of an accelerator, or all work of a doorbell */
    DEED_WINDOW_LOAD,  /* a core's load from another PE's memory, or from shared memory */
    DEED_WINDOW_STORE,
    DEED_SET,          /* a list of readers */
};

/* A deed: an access to memory by a DMA engine, an accelerator or another PE's core. */
struct deed {
    uint8_t kind, device;
    bool at_once;       /* a landing, over as soon as the source is done */
    uint8_t kept;       /* HELD or MARKED: the record must not be reused */
    uint32_t tag;
    uint32_t pe, count; /* PE, and its time or descriptor's number; `count` of a set: a reader */
    uint32_t address;   /* of the descriptor, command or instruction; of a set: the other readers */
    uint32_t from;      /* of a landing: the source's place; NOWHERE_AT if messages may overtake */
    uint32_t observer;  /* PE whose core can see the end */
    uint32_t seen;      /* time at which the observer saw the end; 0: not yet */
    uint32_t landings;  /* of a fetch: the last landing; of a landing: the previous landing */
    uint32_t under_way; /* of a fetch: destinations without a landing yet */
};

/* HELD: a descriptor under way, and its landings. MARKED: a deed with references. */
enum { HELD = 1, MARKED = 2 };

struct race_side {
    uint32_t kind, pe, address, tag, device, stores;
};

/* Two accesses of a byte of a PE's memory or of DRAM, the earlier first. */
struct race {
    uint32_t place, address;
    struct race_side sides[2];
};

/* Distinguishes a deed's number from a core's time. */
#define DEED 0x80000000U

enum { CELL_PAGE = 1024 };

/* Per byte: the last store, and the loads since. */
struct cells {
    uint32_t stored[CELL_PAGE];    /* time of the memory's own core, or a deed; 0: ordered before all accesses */
    uint32_t loaded[CELL_PAGE];    /* time of the memory's own core */
    uint32_t read[CELL_PAGE];      /* a deed, or a set of readers */
    uint32_t stored_at[CELL_PAGE]; /* address of the own core's instruction */
    uint32_t loaded_at[CELL_PAGE];
};

/* Words that cores and messages access without order, like registers, each word by itself. A reader of a word is
 * ordered after the writer. */
struct polled {
    uint32_t from, to;
    struct view *words; /* the view of each word's writer */
};

enum { MOST_POLLED = 4 };

struct deed_list {
    uint32_t *deeds;
    size_t count, room;
};

/* All records of deeds on a board. */
struct deeds {
    struct deed **blocks;
    size_t block_count, block_room;
    uint32_t count;        /* the last number; 0 is no deed */
    uint32_t unused;       /* first free record; its `count` is the next */
    uint32_t used, enough; /* records in use; number at which unreferenced records are collected */
    struct cells ***dram;  /* cells of DRAM, by chip */
};

struct arrived {
    struct view view;
    uint32_t number;  /* of the message, among its engine's descriptors */
    uint32_t from;    /* as in a landing */
    uint32_t landing; /* a deed, or 0 */
};

/* Increments of a flag not seen by the core. `looked`: the core has read the flag once without these increments. */
struct counted {
    struct arrived *waiting;
    size_t count, room;
    bool looked;
};

enum { CHAINS_KEPT = 16 };

/* A PE's state in the search for races. */
struct races {
    struct view view;
    struct cells **cells;
    struct polled polled[MOST_POLLED];
    uint32_t polled_count;
    struct counted *flags;
    struct deed_list landings;     /* landings not seen by the core */
    struct deed_list sent;         /* landings of the PE's own messages since the host last sent a byte */
    struct deed_list unseen;       /* work of accelerators whose end the core has not seen */
    uint32_t started;              /* descriptors started by the DMA */
    uint32_t rung, over;           /* chains queued, chains finished */
    uint32_t last_of[CHAINS_KEPT]; /* the last descriptor of a finished chain */
    uint32_t idle_at;              /* instruction that last read the idle DMA as busy */
    struct view *jobs;             /* by accelerator: the core's view at its last request for work */
    uint32_t *works;               /* by accelerator: the deed of the present work */
    struct race race;
};

/* races.c: memory. pe->races is 0 on a board without a search for races. */
void races_create(struct mesh *mesh);
void races_free(struct mesh *mesh);
void races_poll(struct pe *pe, uint32_t from, uint32_t to);
void races_load(struct pe *pe, uint32_t address, uint32_t bytes);
void races_store(struct pe *pe, uint32_t address, uint32_t bytes);
void races_register(struct pe *pe, struct view *word, bool stores);
void races_forget(struct pe *pe, uint32_t address, uint32_t bytes);
void races_access(struct mesh *mesh, struct view *view, uint32_t deed, struct place place, uint32_t bytes, bool stores);

/* races_records.c. races_add() collects no unused records, and may therefore be called in the middle of an access. */
uint32_t races_deed(struct mesh *mesh, struct deed deed);
uint32_t races_add(struct mesh *mesh, struct deed deed);
struct deed *races_of(const struct mesh *mesh, uint32_t deed);
uint32_t races_next(uint32_t count);
void races_list(struct deed_list *list, uint32_t deed);
void races_free_records(struct mesh *mesh);

/* races_order.c: order of accesses. */
struct view races_release(struct pe *pe);
void races_start(struct pe *pe);
void races_window(struct pe *pe, struct place place, uint32_t bytes, bool stores);

/* DMA: a doorbell is accepted; the first chain ends; a descriptor is read; the list of destinations is read; the source
 * has been read; the bytes land; the transfer ends; a flag counts; registers are read. */
struct view races_ring(struct pe *pe);
void races_chain_ends(struct pe *pe);
void races_fetch(struct transfer *transfer, uint32_t address, uint32_t bytes);
void races_fetch_list(struct transfer *transfer, uint32_t address);
void races_read_source(struct transfer *transfer);
void races_land(struct transfer *transfer, struct place to);
void races_end(struct transfer *transfer);
void races_counted(struct pe *pe, uint32_t flag, const struct transfer *transfer, bool arrived);
uint32_t races_look(struct pe *pe, uint32_t flag);
void races_set_flag(struct pe *pe, uint32_t flag);
void races_accepted(struct pe *pe);
void races_host_speaks(struct pe *pe);
void races_completed(struct pe *pe, uint32_t count);
bool races_sees_idle(struct pe *pe);

/* Accelerators: a register is written; a command is fetched; memory is read or written; a register is read. */
void races_work_asked(struct device_host *host, uint32_t value);
void races_work_begins(struct device_host *host, uint32_t address);
void races_work_accesses(struct device_host *host, uint32_t address, uint32_t bytes, bool stores);
void races_work_seen(struct device_host *host);

#endif
