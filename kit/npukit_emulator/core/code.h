/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Code: what each block of instructions costs (blocks.c). */
#ifndef CODE_H
#define CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What to know of an instruction. */
enum remark {
    SENDS_EVENT = 1,       /* SEV */
    CONDITIONAL = 2,       /* under an IT instruction */
    BEFORE_ACCESS = 4,     /* an IT instruction with a load or store under it */
    BEFORE_REGISTERS = 8,  /* ... that has been seen to access registers */
    NEEDS_WORDS = 16,      /* an access that faults unless its base register is a multiple of 4, to look at each time */
    STORES = 32,           /* an instruction that stores */
    BARRIER = 64,          /* DSB */
    TO_REGISTERS = 128,    /* a store that has been seen to go to registers */
};
enum { BASE_REGISTER_SHIFT = 12 }; /* in `remarks`, with NEEDS_WORDS: which register */
enum { MOST_NEEDS = 4 };

/* Instructions and cycles of a block before each of its halfwords, and of the whole of it. */
struct progress {
    uint16_t instructions;
    uint16_t cycles;
    uint16_t remarks; /* on the instruction that starts here */
};

/* A core register that, with a number added, must be a multiple of 4 as the block begins, or the access at byte `at`
 * faults. */
struct need {
    uint16_t core_register;
    uint16_t at;
    int32_t added;
};

/* What lets a block's first instruction be pipelined behind the last one of the block before, a bit for each core
 * register. */
struct joint {
    uint16_t can_follow; /* 1 if the first instruction is a load or store that a load may precede */
    uint16_t address;    /* registers of its address */
    uint16_t loaded;     /* the register that the last instruction loads, if it is a single load */
    uint16_t stack_bytes; /* how far below its start the stack pointer goes in the block */
    uint16_t stack_at;    /* and at which of its bytes */
    uint16_t fpu_at;      /* its first byte that is of an FPU instruction, plus 1; 0: none */
    uint16_t need_count, keeps_needs; /* whether the needs hold again at its end if they did at its begin */
    struct need needs[MOST_NEEDS];
};

/* A block: instructions that run one after another up to a branch. */
struct block {
    struct block *before; /* the one that was learnt before it */
    uint16_t keys[2]; /* its size in bytes, without and with an FPU; 0 if it needs a closer look each time it runs */
    uint16_t again;   /* its size; 0 if it needs a closer look even directly after itself */
    uint16_t size;
    uint8_t stores;  /* 1 if there is a store to memory behind its last DSB */
    uint8_t carries; /* 1 if it has no DSB */
    bool watched;    /* its instructions have to say that they are next */
    bool has_words;  /* some of its instructions NEEDS_WORDS */
    bool has_conditions; /* some are CONDITIONAL */
    bool calls;      /* a function begins here, or its caller goes on */
    struct progress whole;
    struct joint joint;
    struct progress progress[];
};

/* Where no code has run yet. */
extern struct block unknown_block;

/* Fills `progress` (size / 2 + 1 entries) and `joint` for the code. */
typedef void decode_function(const uint8_t *code, uint32_t size, uint32_t address, struct progress *progress,
                             struct joint *joint);

/* A program, and what is known of its code. Shared by the PEs that run it, as long as their code is the same. */
struct image {
    uint32_t pe_count; /* how many share it */
    struct image *before;  /* the one that was added before it */
    struct block *learnt;  /* the last block */
    struct block **blocks; /* the one that starts at each halfword of SRAM; never changed, only replaced */
    uint32_t code_low, code_high;    /* where code has run */
    uint32_t stack_bottom;           /* 0: not known */
    uint32_t arena_from, arena_to;   /* activations: shadow.c */
    uint8_t *calls;                  /* calls.c; 0: calls are not looked at */
    uint32_t code_from, code_to;     /* what must not be written while the program runs; empty if not known */
};

#endif
