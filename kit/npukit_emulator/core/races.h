/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Races: accesses of one byte, one of them a store, that nothing orders. A core, an accelerator's work and a message are
 * ordered by what the hardware manual grants alone: a doorbell, the end of work that the core has read, a flag's count
 * that the core has read. */
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

/* Counts of all PEs: how far each core is known to be, and behind them how far each DMA engine is. Shared, and changed
 * only while it is not. */
struct row;

/* What a core knows, or knew as it rang a doorbell. `time` counts its own doorbells, `engine` descriptors of its own DMA
 * that have been read with their sources. */
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
    DEED_CORE,         /* an access of a core to its own memory: has no deed, its cell has the core's time */
    DEED_FETCH,        /* a DMA engine reads a descriptor, its list of destinations and its source */
    DEED_LANDING,      /* a message's bytes are written */
    DEED_WORK,         /* a command of an accelerator, or all that follows one doorbell */
    DEED_WINDOW_LOAD,  /* a core's load from another PE's memory, or from one that all share */
    DEED_WINDOW_STORE,
    DEED_SET,          /* several that read */
};

/* What has accessed memory, other than the core that the memory belongs to. */
struct deed {
    uint8_t kind, device;
    bool at_once;       /* a landing that is over as soon as its source is done */
    uint8_t kept;       /* its record is not for others: HELD or MARKED */
    uint32_t tag;
    uint32_t pe, count; /* whose, and which one of it; of a set: one of it */
    uint32_t address;   /* of the descriptor, the command, or the instruction; of a set: the rest */
    uint32_t from;      /* of a message that overtakes none before it: the place where it starts */
    uint32_t observer;  /* the PE whose core can see that it is over */
    uint32_t seen;      /* that core's time as it saw it; 0: it has not */
    uint32_t landings;  /* of a descriptor that is fetched: the last one; of a landing: the one before, of the same */
    uint32_t under_way; /* of a descriptor that is fetched: the destinations where it has not landed yet */
};

/* A descriptor that is under way, with where it has landed; a deed that something refers to. */
enum { HELD = 1, MARKED = 2 };

struct race_side {
    uint32_t kind, pe, address, tag, device, stores;
};

/* Two accesses, the earlier one first, of a byte of a PE's memory or of DRAM. */
struct race {
    uint32_t place, address;
    struct race_side sides[2];
};

/* Marks a deed's number where a core's time may stand as well. */
#define DEED 0x80000000U

enum { CELL_PAGE = 1024 };

/* Of each byte: what stored it last, and what has loaded it since. */
struct cells {
    uint32_t stored[CELL_PAGE];    /* the time of the memory's own core, or a deed; 0: before all */
    uint32_t loaded[CELL_PAGE];    /* the time of the memory's own core */
    uint32_t read[CELL_PAGE];      /* a deed */
    uint32_t stored_at[CELL_PAGE]; /* the instructions of the own core */
    uint32_t loaded_at[CELL_PAGE];
};

/* Words that cores and messages read and write without being ordered, each for itself, like registers. Who reads one
 * comes after who wrote it. */
struct polled {
    uint32_t from, to;
    struct view *words; /* what was known as they were written */
};

enum { MOST_POLLED = 4 };

struct deed_list {
    uint32_t *deeds;
    size_t count, room;
};

/* The records of a board. */
struct deeds {
    struct deed **blocks;
    size_t block_count, block_room;
    uint32_t count;        /* the last number; 0 is none */
    uint32_t unused;       /* the first record that is free; its `count` is the next */
    uint32_t used, enough; /* records; how many of them are worth a look for those that nothing refers to */
    struct cells ***dram;  /* of chips */
};

struct arrived {
    struct view view;
    uint32_t number;  /* of the message, among its engine's */
    uint32_t from;    /* as of a landing */
    uint32_t landing; /* a deed, or 0 */
};

/* What has made a flag count and is not seen yet. `looked`: the count has been read as it would be without. */
struct counted {
    struct arrived *waiting;
    size_t count, room;
    bool looked;
};

enum { CHAINS_KEPT = 16 };

/* A PE. */
struct races {
    struct view view;
    struct cells **cells;
    struct polled polled[MOST_POLLED];
    uint32_t polled_count;
    struct counted *flags;
    struct deed_list landings;     /* that its core has not seen */
    struct deed_list sent;         /* landings of its own messages since the host last said something */
    struct deed_list unseen;       /* works of accelerators that the core has not seen to be over */
    uint32_t started;              /* descriptors of its DMA */
    uint32_t rung, over;           /* chains */
    uint32_t last_of[CHAINS_KEPT]; /* the last descriptor of a chain that is over */
    uint32_t idle_at;              /* the instruction to which the DMA last showed that it is busy, though it is not */
    struct view *jobs;             /* by accelerator: what the core knew as it last asked for work */
    uint32_t *works;               /* by accelerator: the deed of what it does */
    struct race race;
};

/* races.c: memory. Of a board that does not look for races pe->races is 0. */
void races_create(struct mesh *mesh);
void races_free(struct mesh *mesh);
void races_poll(struct pe *pe, uint32_t from, uint32_t to);
void races_load(struct pe *pe, uint32_t address, uint32_t bytes);
void races_store(struct pe *pe, uint32_t address, uint32_t bytes);
void races_register(struct pe *pe, struct view *word, bool stores);
void races_forget(struct pe *pe, uint32_t address, uint32_t bytes);
void races_access(struct mesh *mesh, struct view *view, uint32_t deed, struct place place, uint32_t bytes, bool stores);

/* races_records.c. races_add() looks for no record to use again, so that one in the midst of an access may call it. */
uint32_t races_deed(struct mesh *mesh, struct deed deed);
uint32_t races_add(struct mesh *mesh, struct deed deed);
struct deed *races_of(const struct mesh *mesh, uint32_t deed);
uint32_t races_next(uint32_t count);
void races_list(struct deed_list *list, uint32_t deed);
void races_free_records(struct mesh *mesh);

/* races_order.c: what orders accesses. */
struct view races_release(struct pe *pe);
void races_start(struct pe *pe);
void races_window(struct pe *pe, struct place place, uint32_t bytes, bool stores);

/* DMA: a doorbell is accepted; the first chain is over; a descriptor is read; its source has been read; it lands; all of
 * it is over; a flag counts; registers are read. */
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

/* Accelerators: a register is written; a command is fetched; work reads or writes; a register is read. */
void races_work_asked(struct device_host *host, uint32_t value);
void races_work_begins(struct device_host *host, uint32_t address);
void races_work_accesses(struct device_host *host, uint32_t address, uint32_t bytes, bool stores);
void races_work_seen(struct device_host *host);

#endif
