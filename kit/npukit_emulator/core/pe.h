/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Processing elements (pe.c), and the modules around them. */
#ifndef PE_H
#define PE_H

#include <unicorn/unicorn.h>

#include "code.h"
#include "device.h"
#include "exceptions.h"
#include "races.h"

enum { DEVICES_PER_PE = 8, BLOCK_HALFWORDS = 2048 };
enum { MOST_MEMORIES = 6, MOST_WINDOWS = 16 };
enum { NO_SITE = 1 }; /* no instruction lies at an odd address */

struct mesh;
struct pe;

enum pe_state { PE_ABSENT, PE_RUNNING, PE_ASLEEP, PE_FAULTED, PE_DEAD };
enum stop {
    STOP_NONE,
    STOP_LIMIT,
    STOP_WAIT_FOR_OTHERS,
    STOP_INSTRUMENT,
    STOP_AND_GO_ON,
    STOP_EXCEPTION,
    STOP_RETURN,
    STOP_FAULT,
    STOP_DEBUG,
    STOP_REPEAT,
};

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
    FAULT_FOREIGN_CODE, /* a store to another PE's memory */
    FAULT_DMA_CODE,     /* a message of this PE's DMA */
    FAULT_OWN_CODE,
    FAULT_NO_FPU,
    FAULT_NO_BARRIER,
    FAULT_NEVER_WAKES,
    FAULT_UNDEFINED_USE, /* of a device; details in `what` */
    FAULT_UNWRITTEN,
    FAULT_DMA_UNWRITTEN, /* `other`: the PE with the unwritten memory */
    FAULT_DEVICE_UNWRITTEN,
    FAULT_DEVICE_CODE,
    FAULT_RACE, /* details in `race` */
    FAULT_CHANGED = 24, /* `what`: a register to be preserved by the function at `address` */
    FAULT_DIFFERS, /* of a device and its model beside it: `what`; the work at `address` */
};

struct fault {
    uint32_t kind;
    uint32_t pe;
    uint32_t address;
    uint32_t other; /* the PE whose memory is concerned */
    uint32_t registers[17]; /* r0-r15, xpsr */
    char what[128];
    struct race race;
    uint64_t since; /* of a device and its model beside it: the cycle in which the work began */
};

/* The emulated half of an accelerator in a PE. */
struct device_host {
    struct pe *pe;
    const struct device_model *model;
    void *state;
    struct device_place place;
    bool pending;
    bool declares; /* the model reports its reads and writes */
    uint64_t taken; /* cycles of the port for clocked devices since `since` */
    uint64_t since, until; /* DMA cycles at the port in [since, until) delay the work */
    bool clocked; /* the model is called in each cycle */
    bool stalled; /* the port is not free in the present cycle */
    uint64_t delay, delayed; /* in a disturbed schedule: cycles without port still to come, from cycle `delayed` on */
    struct beside *beside; /* beside.c: shared by a device and its model; 0: no model */
};

/* An address range of a device. */
struct bus_port {
    struct pe *pe;
    void *device;
    uint32_t (*read)(struct pe *pe, void *device, uint32_t offset);
    void (*write)(struct pe *pe, void *device, uint32_t offset, uint32_t value);
    bool (*narrow)(uint32_t offset); /* whether a register takes bytes and halfwords; 0: none does */
    bool bytes;  /* registers are one byte wide and take bytes only */
    bool shared; /* other PEs can change the value read, or see the value written */
    uint32_t first; /* offset of the device in its page */
};

/* Cycles of DMA at a PE's SRAM port. */
struct port_use {
    uint64_t from, to;
};

/* A memory of another PE in a PE's address space. `base`: its address, for both. */
struct window {
    struct pe *pe, *other;
    uint64_t base;
    uint32_t place, bytes; /* place: offset in the other PE's `sram` */
};

struct calls; /* calls.c */
struct dma;   /* dma.c */
struct cache; /* waits.c */

struct code_range {
    uint32_t from, to;
};

struct pe {
    /* The fields used at every block come first. `cycles` and `instructions` include the whole of the running block. */
    uint64_t cycles;
    uint64_t limit;
    uint64_t instructions;
    struct block **blocks; /* the image's blocks */
    struct block *block;   /* the running block */
    uint32_t block_places, code_base, memory_bases[MOST_MEMORIES], memory_bytes[MOST_MEMORIES];
    uint32_t refill_cycles; /* extra cycles of a taken branch, disturbed by the schedule */
    struct cache *fetches; /* cache for code; 0: code has no wait cycles */
    uint32_t expected; /* end of the running block: start of the next, if no branch is taken */
    uint32_t site;     /* the running instruction, if its block is instrumented */
    uint32_t stop;
    uint8_t fpu;      /* 1 once CPACR enables the FPU */
    uint8_t unordered; /* 1 if stores may be pending since the last DSB before the running block */
    uint64_t slice_end;
    bool alone; /* runs side by side: stops before any access that concerns other PEs */

    struct mesh *mesh;
    struct image *image;
    uc_engine *core;
    uint32_t core_model; /* Unicorn's CPU number */
    uint32_t core_refill_cycles; /* extra cycles of a taken branch */
    bool riscv;          /* true for a RISC-V core */
    decode_function *decode;
    uint32_t number;
    uint32_t state;
    uint32_t pc;
    size_t queue_place;
    const struct block *checked; /* block last found instrumented, and its end */
    uint32_t checked_end;
    uint8_t *word_hooks; /* one bit per halfword of code with a hook for alignment; 0: no hooks */
    struct code_range *instrumented;
    size_t instrumented_count, instrumented_room;
    bool joined; /* the first instruction of `block` is pipelined: a cycle less than in `progress` */
    bool resumes; /* the next block is the rest of `block`, up to `resumed_end` */
    uint32_t resumed_end;

    struct exceptions exceptions;
    uint32_t unordered_before; /* `unordered` of each interrupted program, one bit each */
    bool waits_for_interrupt;  /* asleep in WFI */

    bool event;
    uint64_t event_taken; /* a WFE has consumed the events up to this cycle */
    uint64_t asleep;
    bool watched;          /* watch.c checks every instruction */
    uint32_t read_address; /* flag or accelerator register read last, and its value */
    uint32_t read_value;
    uint32_t fault_kind, fault_address, fault_pc;
    struct calls *calls; /* calls.c; 0: none yet */
    char changed[8];     /* register name, for FAULT_CHANGED */
    bool in_access; /* during a register access of the core */
    uint32_t chance; /* disturb.c: state of the random numbers; 0: undisturbed */

    uint8_t *sram;
    uint8_t *written; /* shadow.c: one byte per byte of `sram`; 0: not watched */
    struct races *races; /* races.c; 0: no search for races */
    struct port_use *port_uses;
    size_t port_use_count, port_use_room;
    struct dma *dma;
    uint32_t *flags;
    uint32_t timer_high[3];
    uint64_t captured; /* cycle captured by a stock board's timer */
    struct device_host devices[DEVICES_PER_PE];
    bool port_taken; /* by DMA or a device, in the cycle that ends */
    uint64_t clock_due; /* cycle at which a cycle of the clocked devices ends */
    bool clock_runs; /* the end of the present cycle is an event */
    uint32_t lacking; /* accelerators of the board absent from this PE, one bit each */
    struct bus_port ports[DEVICES_PER_PE + 48];
    size_t port_count;
    struct window windows[MOST_WINDOWS];
    size_t window_count;
    struct cache *caches; /* of memories with wait cycles */
    uint64_t accelerators_busy;
    uint32_t error_count, last_error, last_error_address;
    uint64_t bytes_sent;
    uint8_t *marks; /* trace.c: one bit per halfword of code */
    struct alone *alone_layers; /* alone.c */
};

void pe_create(struct pe *pe);
const char *pe_power_up(struct pe *pe, struct image *image);
void pe_reset(struct pe *pe);
void pe_run(struct pe *pe, uint64_t until);
void pe_set_event(struct pe *pe);
void pe_post_tick(struct pe *pe);
void pe_interrupt(struct pe *pe, uint32_t number);
void pe_fault(struct pe *pe, uint32_t kind, uint32_t address);
void pe_fault_at(struct pe *pe, uint32_t kind, uint32_t address, uint32_t pc);
void pe_needs_barrier(struct pe *pe);
void pe_kill(struct pe *pe);
void pe_report_fault(struct pe *pe);
uint32_t pe_register(const struct pe *pe, int name);
uint32_t pe_counter(const struct pe *pe);
uint32_t pe_stack_pointer(const struct pe *pe);

/* riscv.c */
void riscv_reset(struct pe *pe);
void riscv_wait(struct pe *pe, uint32_t at);
const char *riscv_attach_events(struct pe *pe);

/* blocks.c */
const char *blocks_watch(struct pe *pe);
bool blocks_rewind(struct pe *pe, uint32_t pc);
void blocks_instrument(struct pe *pe, uint32_t from, uint32_t to);
void blocks_instrument_left(struct pe *pe);
bool blocks_site_known(struct pe *pe);
uint64_t blocks_time(const struct pe *pe);
uint64_t blocks_time_at(const struct pe *pe, uint32_t address);
uint64_t blocks_instructions(const struct pe *pe);
bool blocks_site_conditional(const struct pe *pe);
void blocks_site_stores_to_registers(struct pe *pe);
bool blocks_stored_before_site(const struct pe *pe);
void blocks_remember_registers(struct pe *pe);
void blocks_forget(struct pe *pe, uint32_t from, uint32_t to);
void blocks_jump(struct pe *pe, uint32_t pc);
bool blocks_stored(const struct pe *pe);
void blocks_look_closer(struct pe *pe, uint32_t address);

/* waits.c: wait cycles of slow memories. */
bool waits_watch(struct pe *pe);
uint32_t waits_fetch(struct cache *cache, uint32_t address, uint32_t bytes);
void waits_forget(struct pe *pe);
void waits_free(struct pe *pe);

/* shadow.c: memory written since power-on. */
void shadow_create(struct mesh *mesh);
bool shadow_watch(struct pe *pe);
void shadow_written(const struct pe *pe, uint32_t address, size_t bytes);
bool shadow_is_written(const struct pe *pe, uint32_t address, size_t bytes);
void shadow_share(const struct pe *first, const struct pe *other);
void shadow_leave_it_block(struct pe *pe);

/* alone.c: layers run repeatedly. */
void alone_at(struct pe *pe, uint32_t address);
void alone_repeat(struct pe *pe);
void alone_free(struct pe *pe);

/* disturb.c: random delays from a seed. */
uint64_t disturb_delay(struct pe *pe);

/* calls.c: registers that functions must preserve. */
bool calls_at(const struct pe *pe, uint32_t address);
bool calls_look(struct pe *pe, uint32_t address);
void calls_forget(struct pe *pe);
void calls_watch(const struct pe *pe, struct image *image, const uint32_t *entries, uint32_t count);
void calls_copy(const struct mesh *mesh, const struct image *from, struct image *to);

/* watch.c: checks of blocks and instructions, and of stores into code. */
bool watch_instruction(struct pe *pe);
bool watch_block(struct pe *pe, const struct block *block, uint32_t address);
bool watch_words(struct pe *pe, uint32_t remarks, uint32_t address);
bool watch_is_code(const struct mesh *mesh, uint32_t pe, uint32_t from, uint32_t to);
void watch_resume(struct mesh *mesh, bool step);

#endif
