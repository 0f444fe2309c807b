/* SPDX-License-Identifier: GPL-2.0-only
 *
 * Code: the cost of each block of instructions (blocks.c). */
#ifndef CODE_H
#define CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Properties of an instruction. */
enum remark {
    SENDS_EVENT = 1,       /* SEV */
    CONDITIONAL = 2,       /* under an IT instruction */
    BEFORE_ACCESS = 4,     /* an IT instruction with a load or store under it */
    BEFORE_REGISTERS = 8,  /* an IT instruction with a known register access under it */
    NEEDS_WORDS = 16,      /* faults unless the base register is a multiple of 4; checked at each execution */
    STORES = 32,           /* a store */
    BARRIER = 64,          /* DSB */
    TO_REGISTERS = 128,    /* a store with a known register access */
};
enum { BASE_REGISTER_SHIFT = 12 }; /* bit position of the base register in `remarks`, with NEEDS_WORDS */
enum { MOST_NEEDS = 4 };

/* Instructions and cycles of a block before a halfword, or of the whole block. */
struct progress {
    uint16_t instructions;
    uint16_t cycles;
    uint16_t remarks; /* enum remark, of the instruction at this halfword */
};

/* An alignment condition at the start of a block: `core_register` plus `added` must be a multiple of 4, otherwise the
 * access at byte `at` faults. */
struct need {
    uint16_t core_register;
    uint16_t at;
    int32_t added;
};

/* A block's relation to its neighbours: whether the first instruction is pipelined behind the block before, and the
 * conditions for a run. Sets of registers have a bit per core register. */
struct joint {
    uint16_t can_follow; /* 1 if the first instruction is a load or store that pipelines behind a load */
    uint16_t address;    /* address registers of the first instruction */
    uint16_t loaded;     /* register loaded by the last instruction, if it is a single load */
    uint16_t stack_bytes; /* largest drop of the stack pointer below the value at the start */
    uint16_t stack_at;    /* byte offset of the instruction with the largest drop */
    uint16_t fpu_at;      /* byte offset of the first FPU instruction, plus 1; 0: none */
    uint16_t need_count, keeps_needs; /* `keeps_needs`: 1 if needs that hold at the start hold again at the end */
    struct need needs[MOST_NEEDS];
};

/* A block: consecutive instructions up to a branch. */
struct block {
    struct block *before; /* previously learnt block */
    uint16_t keys[2]; /* size in bytes with the FPU off, on; 0: every run takes a closer look */
    uint16_t again;   /* size; 0: a run directly after itself takes a closer look, too */
    uint16_t size;
    uint8_t stores;  /* 1 if a store to memory follows the last DSB */
    uint8_t carries; /* 1 if the block has no DSB */
    bool watched;    /* needs a hook at each instruction */
    bool has_words;  /* has instructions with NEEDS_WORDS */
    bool has_conditions; /* has CONDITIONAL instructions */
    bool calls;      /* begins a function, or follows a call */
    struct progress whole;
    struct joint joint;
    struct progress progress[];
};

/* Placeholder for code that has not run yet. */
extern struct block unknown_block;

/* Fill `progress` (size / 2 + 1 entries) and `joint` from the code. */
typedef void decode_function(const uint8_t *code, uint32_t size, uint32_t address, struct progress *progress,
                             struct joint *joint);

/* A program, and the blocks learnt so far. PEs share an image while their code is the same. */
struct image {
    uint32_t pe_count; /* number of PEs with the image */
    struct image *before;  /* previously added image */
    struct block *learnt;  /* block learnt last */
    struct block **blocks; /* the block at each halfword of code; replaced blocks stay allocated */
    uint32_t code_low, code_high;    /* range of executed code */
    uint32_t stack_bottom;           /* 0: unknown */
    uint32_t arena_from, arena_to;   /* activations: shadow.c */
    uint8_t *calls;                  /* calls.c; 0: calls are not checked */
    uint32_t code_from, code_to;     /* must not be written while the program runs; empty if unknown */
};

#endif
