/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Processing elements (pe.c), and those who look after them. */
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
    FAULT_FOREIGN_CODE, /* a store through the window */
    FAULT_DMA_CODE,     /* a message of this PE's DMA */
    FAULT_OWN_CODE,
    FAULT_NO_FPU,
    FAULT_NO_BARRIER,
    FAULT_NEVER_WAKES,
    FAULT_UNDEFINED_USE, /* of a device; `what` says more */
    FAULT_UNWRITTEN,
    FAULT_DMA_UNWRITTEN, /* `other` is the PE whose memory it is */
    FAULT_DEVICE_UNWRITTEN,
    FAULT_DEVICE_CODE,
    FAULT_RACE, /* `race` says more */
    FAULT_CHANGED = 24, /* `what` is the register that the function at `address` did not leave as it was */
};

struct fault {
    uint32_t kind;
    uint32_t pe;
    uint32_t address;
    uint32_t other; /* the PE whose memory it is about */
    uint32_t registers[17]; /* r0-r15, xpsr */
    char what[128];
    struct race race;
};

/* The emulated half of an accelerator in a PE. */
struct device_host {
    struct pe *pe;
    const struct device_model *model;
    void *state;
    struct device_place place;
    bool pending;
    bool declares; /* it says what it reads and writes */
    uint64_t since, until; /* the port's use is counted in for [since, until) */
};

/* An address range behind which a device lies. */
struct bus_port {
    struct pe *pe;
    void *device;
    uint32_t (*read)(struct pe *pe, void *device, uint32_t offset);
    void (*write)(struct pe *pe, void *device, uint32_t offset, uint32_t value);
    bool (*narrow)(uint32_t offset); /* which registers take bytes and halfwords; 0: none */
    bool bytes;  /* registers of a byte each, and no other access */
    bool shared; /* others can change what is read, or see what is written */
    uint32_t first; /* where in its page the device begins */
};

/* Cycles in which DMA takes a PE's SRAM port. */
struct port_use {
    uint64_t from, to;
};

/* The memories of PEs, or one of another PE's, as a PE sees them. */
struct window {
    struct pe *pe;
    uint64_t base;
    uint32_t first_pe, place, bytes; /* of each PE: its part of SRAM from `place` on */
    uint32_t cycles; /* beyond those of the way */
};

struct calls; /* calls.c */
struct dma;   /* dma.c */
struct cache; /* waits.c */

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
    uint32_t block_places, code_base, memory_bases[MOST_MEMORIES], memory_bytes[MOST_MEMORIES];
    uint32_t refill_cycles; /* of a taken branch, under the schedule that is set */
    struct cache *fetches; /* what is known of the lines of code that were read; 0: code has no waits */
    uint32_t expected; /* where the block that runs ends: the next one, if no branch is taken */
    uint32_t site;     /* the instruction that runs, if its block is instrumented */
    uint32_t stop;
    uint8_t fpu;      /* 1 once CPACR lets the FPU be used */
    uint8_t unordered; /* 1 if there may have been a store since the last DSB before the block that runs */
    uint64_t slice_end;
    bool alone; /* it stops before anything that others can change or see */

    struct mesh *mesh;
    struct image *image;
    uc_engine *core;
    uint32_t core_model; /* of Unicorn's */
    uint32_t core_refill_cycles; /* of a taken branch */
    bool riscv;          /* whether the core is one of RISC-V */
    decode_function *decode;
    uint32_t number;
    uint32_t state;
    uint32_t pc;
    size_t queue_place;
    const struct block *checked; /* the block last found instrumented, and where it ends */
    uint32_t checked_end;
    uint8_t *word_hooks; /* a bit for each halfword of SRAM whose access is looked at each time; 0: none yet */
    struct code_range *instrumented;
    size_t instrumented_count, instrumented_room;
    bool joined; /* the first instruction of `block` is pipelined, which its progress does not know */
    bool resumes; /* the next block is the rest of `block`, up to here: */
    uint32_t resumed_end;

    struct exceptions exceptions;
    uint32_t unordered_before; /* `unordered` of what has been interrupted, a bit for each */
    bool waits_for_interrupt;  /* asleep in WFI */

    bool event;
    uint64_t event_taken; /* events up to this cycle are used up by a WFE */
    uint64_t asleep;
    bool watched;          /* every instruction says that it is next: watch.c */
    uint32_t read_address; /* of the flag or the accelerator's register that was read last, and what was read */
    uint32_t read_value;
    uint32_t fault_kind, fault_address, fault_pc;
    struct calls *calls; /* calls.c; 0: none yet */
    char changed[8];     /* the register, of FAULT_CHANGED */
    bool in_access; /* a register access of the core is being carried out */
    uint32_t chance; /* disturb.c: what it draws next; 0: no disturbed schedule */

    uint8_t *sram;
    uint8_t *written; /* shadow.c: a byte for each; 0: not watched */
    struct races *races; /* races.c; 0: not looked for */
    struct port_use *port_uses;
    size_t port_use_count, port_use_room;
    struct dma *dma;
    uint32_t *flags;
    uint32_t timer_high[3];
    uint64_t captured; /* by a stock board's timer */
    struct device_host devices[DEVICES_PER_PE];
    uint32_t lacking; /* accelerators of the board that it does not carry, a bit for each */
    struct bus_port ports[DEVICES_PER_PE + 48];
    size_t port_count;
    struct window windows[MOST_WINDOWS];
    size_t window_count;
    struct cache *caches; /* of memories with waits */
    uint64_t accelerators_busy;
    uint32_t error_count, last_error, last_error_address;
    uint64_t bytes_sent;
    uint8_t *marks; /* trace.c: a bit for each halfword of code */
    struct alone *alone_layers; /* alone.c */
};

void pe_create(struct pe *pe);
const char *pe_power_up(struct pe *pe, struct image *image);
void pe_reset(struct pe *pe);
void pe_run(struct pe *pe, uint64_t until);
void pe_set_event(struct pe *pe);
void pe_post_tick(struct pe *pe);
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

/* waits.c: the waits of memories that do not answer at once. */
bool waits_watch(struct pe *pe);
uint32_t waits_fetch(struct cache *cache, uint32_t address, uint32_t bytes);
void waits_forget(struct pe *pe);
void waits_free(struct pe *pe);

/* shadow.c: which memory has been written since power-on. */
void shadow_create(struct mesh *mesh);
bool shadow_watch(struct pe *pe);
void shadow_written(const struct pe *pe, uint32_t address, size_t bytes);
bool shadow_is_written(const struct pe *pe, uint32_t address, size_t bytes);
void shadow_share(const struct pe *first, const struct pe *other);
void shadow_leave_it_block(struct pe *pe);

/* alone.c: layers that run again and again. */
void alone_at(struct pe *pe, uint32_t address);
void alone_repeat(struct pe *pe);
void alone_free(struct pe *pe);

/* disturb.c: schedules by a seed. */
uint64_t disturb_delay(struct pe *pe);

/* calls.c: what functions leave as it was. */
bool calls_at(const struct pe *pe, uint32_t address);
bool calls_look(struct pe *pe, uint32_t address);
void calls_forget(struct pe *pe);
void calls_watch(const struct pe *pe, struct image *image, const uint32_t *entries, uint32_t count);
void calls_copy(const struct mesh *mesh, const struct image *from, struct image *to);

/* watch.c: what looks at single instructions, and at who writes where. */
bool watch_instruction(struct pe *pe);
bool watch_block(struct pe *pe, const struct block *block, uint32_t address);
bool watch_words(struct pe *pe, uint32_t remarks, uint32_t address);
bool watch_is_code(const struct mesh *mesh, uint32_t pe, uint32_t from, uint32_t to);
void watch_resume(struct mesh *mesh, bool step);

#endif
