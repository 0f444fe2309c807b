/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The emulated board: PEs that each run a Unicorn core in their own time, and the events between them.
 *
 * Time is exact because nobody looks ahead: a PE may run ahead of the others by up to a quantum, but before it reads or
 * writes anything that others can change (every register but the timer's), it waits until no PE is behind it.
 *
 * Under an IT instruction Unicorn cannot stop before an access. There the PE waits before the IT instruction, so it may
 * miss what happens in the few cycles between; and the very first time, when nobody knows yet that registers are
 * accessed under that instruction, it does not wait at all. */
#ifndef MESH_H
#define MESH_H

#include <stddef.h>
#include <stdint.h>
#include <unicorn/unicorn.h>

#include "device.h"

#define NEVER UINT64_MAX

enum { DEVICES_PER_PE = 8, BLOCK_HALFWORDS = 2048 };
enum { NO_SITE = 1 }; /* no instruction lies at an odd address */

struct mesh;
struct pe;

/* ---- code: what each block of instructions costs (blocks.c) ---- */

/* What to know of an instruction. */
enum remark {
    SENDS_EVENT = 1,       /* SEV */
    CONDITIONAL = 2,       /* under an IT instruction */
    BEFORE_ACCESS = 4,     /* an IT instruction with a load or store under it */
    BEFORE_REGISTERS = 8,  /* ... that has been seen to access registers */
    NEEDS_WORDS = 16,      /* an access that faults unless its base register is a multiple of 4 */
};
enum { BASE_REGISTER_SHIFT = 8 }; /* in `remarks`, with NEEDS_WORDS: which register */


/* Instructions and cycles of a block before each of its halfwords, and of the whole of it. */
struct progress {
    uint16_t instructions;
    uint16_t cycles;
    uint16_t remarks; /* on the instruction that starts here */
};

/* What lets a block's first instruction be pipelined behind the last one of the block before, a bit for each core
 * register. */
struct joint {
    uint16_t can_follow; /* 1 if the first instruction is a load or store that a load may precede */
    uint16_t address;    /* registers of its address */
    uint16_t loaded;     /* the register that the last instruction loads, if it is a single load */
    uint16_t stack_bytes; /* how far below its start the stack pointer goes in the block */
    uint16_t stack_at;    /* and at which of its bytes */
};

/* A block: instructions that run one after another up to a branch. */
struct block {
    uint16_t key; /* its size in bytes; 0 if it needs a closer look each time it runs */
    uint16_t size;
    bool watched; /* its instructions have to say that they are next */
    struct progress whole;
    struct joint joint;
    struct progress progress[];
};

/* Where no code has run yet. */
extern struct block unknown_block;

/* Fills `progress` (size / 2 + 1 entries) and `joint` for the code. */
typedef void decode_function(const uint8_t *code, uint32_t size, uint32_t address, struct progress *progress,
                             struct joint *joint);

/* A program, and what is known of its code. Shared by the PEs that run it. */
struct image {
    struct block **blocks; /* the one that starts at each halfword of SRAM; never changed, only replaced */
    uint32_t code_low, code_high;    /* where code has run */
    uint32_t stack_bottom;           /* 0: not known */
    uint32_t code_from, code_to;     /* what nobody may write while the program runs; empty if not known */
};

/* ---- events (events.c): what happens at a later cycle ---- */

struct event {
    uint64_t time;
    uint32_t rank; /* of two at the same cycle, the lower comes first */
    uint64_t sequence;
    void (*happen)(struct mesh *mesh, void *subject);
    void *subject;
};

struct events {
    struct event *heap;
    size_t count, room;
    uint64_t sequence;
};

void events_post(struct mesh *mesh, uint64_t time, uint32_t rank, void (*happen)(struct mesh *, void *), void *subject);
uint64_t events_first_time(const struct mesh *mesh);
void events_happen(struct mesh *mesh);

/* ---- processing elements (pe.c) ---- */

enum pe_state { PE_ABSENT, PE_RUNNING, PE_ASLEEP, PE_FAULTED, PE_DEAD };
enum stop { STOP_NONE, STOP_LIMIT, STOP_WAIT_FOR_OTHERS, STOP_INSTRUMENT, STOP_AND_GO_ON, STOP_FAULT, STOP_DEBUG };

enum fault_kind {
    FAULT_NONE,
    FAULT_UNDEFINED,
    FAULT_READ,
    FAULT_WRITE,
    FAULT_FETCH,
    FAULT_ACCESS_SIZE,
    FAULT_SVC,
    FAULT_BREAKPOINT,
    FAULT_EXCEPTION,
    FAULT_OTHER,
    FAULT_ALIGNMENT,
    FAULT_STACK,
    FAULT_FOREIGN_CODE, /* a store through the window */
    FAULT_DMA_CODE,     /* a message of this PE's DMA */
};

struct fault {
    uint32_t kind;
    uint32_t pe;
    uint32_t address;
    uint32_t other; /* the PE whose memory it is about */
    uint32_t registers[17]; /* r0-r15, xpsr */
};

/* The emulated half of an accelerator in a PE. */
struct device_host {
    struct pe *pe;
    const struct device_model *model;
    void *state;
    struct device_place place;
    bool pending;
    uint64_t since, until; /* the port's use is counted in for [since, until) */
};

/* An address range behind which a device lies. */
struct bus_port {
    struct pe *pe;
    void *device;
    uint32_t (*read)(struct pe *pe, void *device, uint32_t offset);
    void (*write)(struct pe *pe, void *device, uint32_t offset, uint32_t value);
    bool shared; /* others can change what is read, or see what is written */
};

/* Cycles in which DMA takes a PE's SRAM port. */
struct port_use {
    uint64_t from, to;
};

struct dma; /* dma.c */

struct code_range {
    uint32_t from, to;
};

struct pe {
    /* What the block hook touches at every block comes first. `cycles` and `instructions` count the whole of the block
     * that runs. */
    uint64_t cycles;
    uint64_t limit;
    uint64_t instructions;
    struct block **blocks; /* of the image */
    struct block *block;   /* that runs */
    uint32_t block_places;
    uint32_t refill_cycles;
    uint32_t expected; /* where the block that runs ends: the next one, if no branch is taken */
    uint32_t site;     /* the instruction that runs, if its block is instrumented */
    uint32_t stop;
    uint64_t slice_end;
    bool alone; /* it stops before anything that others can change or see */

    struct mesh *mesh;
    struct image *image;
    uc_engine *core;
    uint32_t number;
    uint32_t state;
    uint32_t pc;
    size_t queue_place;
    const struct block *checked; /* the block last found instrumented, and where it ends */
    uint32_t checked_end;
    struct code_range *instrumented;
    size_t instrumented_count, instrumented_room;
    bool joined; /* the first instruction of `block` is pipelined, which its progress does not know */
    bool resumes; /* the next block is the rest of `block`, up to here: */
    uint32_t resumed_end;

    bool event;
    uint64_t event_taken; /* events up to this cycle are used up by a WFE */
    uint64_t asleep;
    bool watched;          /* every instruction says that it is next: watch.c */
    uint32_t read_address; /* the flag read last, 0 if an accelerator since; and what was read */
    uint32_t read_value;
    uint32_t fault_kind, fault_address, fault_pc;

    uint8_t *sram;
    struct port_use *port_uses;
    size_t port_use_count, port_use_room;
    struct dma *dma;
    uint32_t *flags;
    uint32_t timer_high[3];
    struct device_host devices[DEVICES_PER_PE];
    struct bus_port ports[DEVICES_PER_PE + 4];
    size_t port_count;
    uint64_t accelerators_busy;
    uint32_t error_count, last_error, last_error_address;
    uint64_t bytes_sent;
    uint8_t *marks; /* trace.c: a bit for each halfword of code */
};

void pe_create(struct pe *pe, uint8_t *sram);
const char *pe_power_up(struct pe *pe, struct image *image);
void pe_reset(struct pe *pe);
void pe_run(struct pe *pe, uint64_t until);
void pe_set_event(struct pe *pe);
void pe_fault(struct pe *pe, uint32_t kind, uint32_t address);
void pe_fault_at(struct pe *pe, uint32_t kind, uint32_t address, uint32_t pc);
void pe_kill(struct pe *pe);
void pe_report_fault(struct pe *pe);
uint32_t pe_register(const struct pe *pe, int name);

/* blocks.c */
const char *blocks_watch(struct pe *pe);
void blocks_rewind(struct pe *pe, uint32_t pc);
void blocks_instrument(struct pe *pe, uint32_t from, uint32_t to);
void blocks_instrument_left(struct pe *pe);
bool blocks_site_known(struct pe *pe);
uint64_t blocks_time(const struct pe *pe);
uint64_t blocks_time_at(const struct pe *pe, uint32_t address);
uint64_t blocks_instructions(const struct pe *pe);
bool blocks_site_conditional(const struct pe *pe);
void blocks_remember_registers(struct pe *pe);
void blocks_forget(struct pe *pe, uint32_t from, uint32_t to);
void blocks_jump(struct pe *pe, uint32_t pc);

/* watch.c: what looks at single instructions, and at who writes where. */
bool watch_instruction(struct pe *pe, uint32_t remarks);
bool watch_stack(struct pe *pe, const struct block *block, uint32_t address);
bool watch_is_code(const struct mesh *mesh, uint32_t pe, uint32_t from, uint32_t to);
void watch_resume(struct mesh *mesh, bool step);

/* notes.c: the last messages. */
enum note_kind { NOTE_SENT, NOTE_ARRIVED, NOTE_LOST, NOTE_LATE, NOTE_AGAIN, NOTE_DAMAGED };

struct note {
    uint64_t time;
    uint32_t kind;
    uint32_t owner; /* whose DMA it is */
    uint32_t from, to;
    uint32_t address; /* where it goes */
    uint32_t bytes;
    uint32_t flag;
    uint32_t tag;
};

enum { NOTES = 1024 };

void notes_add(struct mesh *mesh, struct note note);

/* inject.c: what a plan of faults does to the board. */
struct transfer;

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

/* One line of the plan. It happens at a cycle, or with a packet: the one of that number among those that match, or each
 * by chance. NEVER, ANY_PE and ANY_TAG where it does not say. */
struct injection {
    uint64_t at, packet, cycles, bit;
    uint32_t kind, pe, other, from, to, tag, address;
    uint32_t chance; /* of 2^32 */
    uint32_t times;  /* that it has happened, from inject.c */
    uint64_t seen;   /* packets that match, so far */
};

#define ANY_PE UINT32_MAX
#define ANY_TAG UINT32_MAX

uint64_t inject_next(const struct mesh *mesh);
void inject_due(struct mesh *mesh, uint64_t time);
void inject_packet(struct mesh *mesh, struct transfer *transfer);

/* bus.c */
const char *bus_attach(struct pe *pe, uint64_t base, uint32_t size, struct bus_port port);
const char *bus_attach_window(struct pe *pe);
bool bus_meet_the_others(struct pe *pe);

/* devices.c: accelerators. */
const char *devices_attach(struct pe *pe);

/* port.c: the SRAM port that DMA and accelerators share. */
void port_use(struct pe *pe, uint64_t from, uint64_t cycles);
uint64_t port_used(const struct pe *pe, uint64_t from, uint64_t to);
void port_forget(struct pe *pe, uint64_t before);

/* timer.c */
const char *timer_attach(struct pe *pe);

/* uart.c: on the root PE. */
struct uart {
    struct pe *pe;
    uint64_t byte_cycles;
    uint8_t received[256];
    uint32_t received_first, received_count;
    bool lost;
    uint8_t sending[16];
    uint32_t sending_first, sending_count;
    bool line_busy;
    uint8_t on_line;
    uint8_t *to_board; /* from the host, not yet on the wire */
    size_t to_board_first, to_board_count, to_board_room;
    bool arriving;
    uint8_t *to_host;
    size_t to_host_count, to_host_room;
};

const char *uart_attach(struct pe *pe);
void uart_receive(struct mesh *mesh, const uint8_t *data, size_t count);
size_t uart_take(struct mesh *mesh, uint8_t *data, size_t room);

/* memory.c */
bool memory_create(struct mesh *mesh);
void memory_free(struct mesh *mesh);

/* dma.c and noc.c */
const char *dma_attach(struct pe *pe);
void dma_reset(struct pe *pe);
void dma_stop(struct pe *pe);
void dma_stall(struct pe *pe, uint64_t until);

/* flash.c: on the root PE of a board that starts by itself. */
struct flash;

struct flash_figures {
    uint64_t base, window;
    uint32_t bytes, page_bytes, loader_bytes;
    uint32_t erase_cycles, program_cycles, copy_cycles_per_word;
};

void flash_create(struct mesh *mesh, struct flash_figures figures, uint8_t *memory, uint32_t cause);
const char *flash_attach(struct pe *pe);
const char *boot_attach(struct pe *pe); /* without a flash */
void flash_load(struct mesh *mesh);
void flash_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance);
uint64_t flash_operations(const struct mesh *mesh);
void flash_free(struct mesh *mesh);

/* ---- what happened when (trace.c) ---- */

enum trace_kind {
    TRACE_MARK = 1,     /* `a`: the instruction that a PE comes to */
    TRACE_SLEEP = 2,    /* of a PE's core */
    TRACE_WORK = 3,     /* of a PE's accelerator, `a` */
    TRACE_TRANSFER = 4, /* of a descriptor of a PE, from place `a` to place `b`: `c` bytes */
    TRACE_LINK = 5,     /* taken, from the PE to the PE `a`; `b`: which of a border's links; `c` bytes */
    TRACE_DRAM = 6,     /* taken, of chip `pe` */
};

struct trace_record {
    uint64_t from, to;
    uint32_t kind, pe, a, b, c, reserved;
};

struct trace; /* trace.c */

/* Does nothing unless the trace is on. */
void trace_record(struct mesh *mesh, struct trace_record record);
void trace_switch(struct mesh *mesh, bool on);
bool trace_is_on(const struct mesh *mesh);

/* From now on, say when the PE comes to one of these instructions, which ascend. */
void trace_mark(struct pe *pe, const uint32_t *addresses, size_t count);
size_t trace_take(struct mesh *mesh, struct trace_record *records, size_t room);
void trace_free(struct mesh *mesh);

/* ---- the board (schedule.c, api.c) ---- */

struct figures {
    uint64_t clock_hz, baud;
    uint32_t sram_bytes;
    uint32_t chip_columns, chip_rows, columns, rows;
    uint64_t timer_base, noc_base, uart_base, window_base;
    uint64_t boot_base; /* 0: no boot controller */
    uint32_t port_bytes_per_cycle, setup_cycles, hop_cycles;
    uint32_t chip_hop_cycles, chip_links_per_border, chip_link_bytes_per_cycle;
    uint64_t dram_bytes;
    uint32_t dram_bytes_per_cycle, dram_latency_cycles;
    uint32_t flags;
    uint32_t refill_cycles;
};

struct accelerator {
    uint64_t base;
    const struct device_model *model;
    const struct device_figure *figures;
    uint32_t figure_count;
};

struct noc; /* noc.c */

struct unicorn {
    uc_err (*open)(uc_arch, uc_mode, uc_engine **);
    uc_err (*close)(uc_engine *);
    uc_err (*ctl)(uc_engine *, uc_control_type, ...);
    uc_err (*mem_map)(uc_engine *, uint64_t, uint64_t, uint32_t);
    uc_err (*mem_map_ptr)(uc_engine *, uint64_t, uint64_t, uint32_t, void *);
    uc_err (*mem_write)(uc_engine *, uint64_t, const void *, uint64_t);
    uc_err (*mmio_map)(uc_engine *, uint64_t, uint64_t, uc_cb_mmio_read_t, void *, uc_cb_mmio_write_t, void *);
    uc_err (*hook_add)(uc_engine *, uc_hook *, int, void *, void *, uint64_t, uint64_t, ...);
    uc_err (*emu_start)(uc_engine *, uint64_t, uint64_t, uint64_t, size_t);
    uc_err (*emu_stop)(uc_engine *);
    uc_err (*reg_read)(uc_engine *, int, void *);
    uc_err (*reg_write)(uc_engine *, int, const void *);
};

/* A PE under a debugger. */
struct debug {
    bool on;
    uint32_t pe;
    uint8_t *breakpoints; /* a byte for each halfword of SRAM */
    bool step, stopped;
    uint64_t resumed_at; /* the instruction with which it goes on, which it is not to stop at */
};

struct mesh {
    struct figures figures;
    const struct unicorn *unicorn;
    decode_function *decode;
    struct accelerator accelerators[DEVICES_PER_PE];
    uint32_t accelerator_count;
    struct pe *pes;
    uint32_t pe_count;
    uint32_t root;
    uint8_t *sram; /* of all PEs */
    struct events events;
    struct pe **queue; /* the PEs that run, the one furthest behind first */
    size_t queue_count;
    uint64_t now;
    struct uart uart;
    bool output; /* the UART has sent what it had to send */
    struct pe *faulted;
    uint32_t fault_other;
    struct noc *noc;
    struct flash *flash;
    struct trace *trace;
    uint32_t end;
    bool strict; /* misaligned accesses fault, at some cost of speed */
    struct debug debug;
    struct note notes[NOTES];
    uint64_t note_count;
    struct injection *injections;
    size_t injection_count;
    uint32_t chance;
    struct crew *crew; /* side_by_side.c */
};

/* What ends a board's time from within. */
enum end { END_NONE, END_RESTART, END_POWER };

enum outcome {
    RAN_TO_CYCLE,
    RAN_TO_OUTPUT,
    RAN_TO_IDLE,
    RAN_TO_FAULT,
    RAN_OUT_OF_TIME,
    RAN_TO_RESTART,
    RAN_TO_POWER_CUT,
    RAN_TO_STOP,
};

int schedule_run(struct mesh *mesh, uint64_t until, bool stop_at_output, double seconds);
void schedule_add(struct mesh *mesh, struct pe *pe);
bool schedule_settle(struct mesh *mesh, uint64_t time);
uint64_t schedule_slice_end(const struct pe *pe, uint64_t until);
size_t schedule_take_behind(struct mesh *mesh, uint64_t until, struct pe **batch);
void schedule_add_running(struct mesh *mesh, struct pe *pe);

/* side_by_side.c */
bool side_by_side_run(struct mesh *mesh, uint64_t behind, uint64_t until);
void side_by_side_end(struct mesh *mesh);

struct image *mesh_add_image(struct mesh *mesh, uint32_t stack_bottom, uint32_t code_from, uint32_t code_to);

void *grow(void *array, size_t *room, size_t needed, size_t item);

#endif
