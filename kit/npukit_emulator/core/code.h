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
    BEFORE_REGISTERS = 8,  /* the same, if the access has been seen to go to a register */
    NEEDS_WORDS = 16,      /* faults unless its base register is a multiple of 4; checked at each execution */
    STORES = 32,           /* a store */
    BARRIER = 64,          /* DSB */
    TO_REGISTERS = 128,    /* a store that has been seen to go to a register */
};
enum { BASE_REGISTER_SHIFT = 12 }; /* bit position of the base register in `remarks`, with NEEDS_WORDS */
enum { MOST_NEEDS = 4 };

/* Instructions and cycles of a block before one of its halfwords, or of the whole block. */
struct progress {
    uint16_t instructions;
    uint16_t cycles;
    uint16_t remarks; /* of the instruction that starts here */
};

/* An alignment condition at the start of a block: `core_register` plus `added` must be a multiple of 4, otherwise the
 * access at byte `at` faults. */
struct need {
    uint16_t core_register;
    uint16_t at;
    int32_t added;
};

/* A block's relation to its neighbours: whether its first instruction is pipelined behind the last load of the block
 * before, and the conditions under which it runs. Sets of registers have one bit per core register. */
struct joint {
    uint16_t can_follow; /* 1 if the first instruction is a load or store that pipelines behind a load */
    uint16_t address;    /* address registers of the first instruction */
    uint16_t loaded;     /* register loaded by the last instruction, if it is a single load */
    uint16_t stack_bytes; /* largest drop of the stack pointer below its value at the start */
    uint16_t stack_at;    /* byte offset of the instruction with the largest drop */
    uint16_t fpu_at;      /* byte offset of the first FPU instruction, plus 1; 0: none */
    uint16_t need_count, keeps_needs; /* 1 if needs that hold at the start hold again at the end */
    struct need needs[MOST_NEEDS];
};

/* A block: consecutive instructions up to a branch. */
struct block {
    struct block *before; /* block learnt before this one */
    uint16_t keys[2]; /* size in bytes, with the FPU off and on; 0 if every run needs a closer look */
    uint16_t again;   /* size; 0 if a run directly after itself needs a closer look */
    uint16_t size;
    uint8_t stores;  /* 1 if a store to memory follows its last DSB */
    uint8_t carries; /* 1 if it has no DSB */
    bool watched;    /* needs a hook at each instruction */
    bool has_words;  /* has instructions with NEEDS_WORDS */
    bool has_conditions; /* has CONDITIONAL instructions */
    bool calls;      /* begins a function, or follows a call */
    struct progress whole;
    struct joint joint;
    struct progress progress[];
};

/* Stands for code that has not run yet. */
extern struct block unknown_block;

/* Fill `progress` (size / 2 + 1 entries) and `joint` from the code. */
typedef void decode_function(const uint8_t *code, uint32_t size, uint32_t address, struct progress *progress,
                             struct joint *joint);

/* A program, and the blocks learnt of it. Shared by the PEs that run it, while their code is the same. */
struct image {
    uint32_t pe_count; /* PEs that share the image */
    struct image *before;  /* image added before this one */
    struct block *learnt;  /* block learnt last */
    struct block **blocks; /* the block at each halfword of code; replaced blocks stay allocated */
    uint32_t code_low, code_high;    /* range of code that has run */
    uint32_t stack_bottom;           /* 0: unknown */
    uint32_t arena_from, arena_to;   /* activations: shadow.c */
    uint8_t *calls;                  /* calls.c; 0: calls are not checked */
    uint32_t code_from, code_to;     /* must not be written while the program runs; empty if unknown */
};

#endif
