/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between PEs: DMA descriptors and counted flags. The hardware's own manual: boards/pe-mesh.md, section 4. */
#ifndef NOC_H
#define NOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum noc_kind { NOC_COPY = 1 };
enum noc_option { NOC_MULTICAST = 1 };
enum { NOC_NO_FLAG = 0xFF };
enum { NOC_NO_MESSAGE = 0xFFFF }; /* the tag of what is no message of the plan */
enum { NOC_GIVEN_UP = -1 }; /* the error code of a wait that the host has broken off */
enum { NOC_DRAM = 0x80000000 }; /* + chip: stands for a PE and means that chip's DRAM */
enum { NOC_THIS_CHIP = 0x40000000 }; /* + n: PE n of the chip of the PE whose DMA it is; + NOC_DRAM: its DRAM */

/* One of a multicast's destinations. */
struct noc_destination {
    uint32_t pe;
    uint32_t address;
};

/* A two-dimensional copy. With NOC_MULTICAST `destination_pe` is the address of a list of noc_destination and
 * `destination` its length. */
struct noc_descriptor {
    const struct noc_descriptor *next;
    uint8_t kind;
    uint8_t options;
    uint16_t tag;
    uint32_t source_pe;
    const void *source; /* in the source PE's memory */
    uint32_t destination_pe;
    uint32_t destination;
    uint16_t row_bytes;
    uint16_t rows;
    int32_t source_stride;
    int32_t destination_stride;
    uint8_t source_flag;      /* counts here, when the source may be overwritten */
    uint8_t destination_flag; /* counts in each destination, when all is in place */
    uint16_t reserved0;
    uint32_t reserved1;
    uint32_t reserved2;
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(sizeof(struct noc_descriptor) == 48, "a descriptor is 12 words");
_Static_assert(offsetof(struct noc_descriptor, row_bytes) == 24, "word 6");
_Static_assert(offsetof(struct noc_descriptor, source_flag) == 36, "word 9");
#endif

/* Start a chain and return at once; try again while the engine's queue is full. 0, or the engine's error code. */
int32_t noc_send(const struct noc_descriptor *first);

/* Count `flag` of another PE, and this one's `own_flag` once that is on its way. 0, or the engine's error code. */
int32_t noc_signal(uint32_t pe, uint8_t flag, uint8_t own_flag, uint16_t tag);

/* The same of several PEs at once, whose addresses do not matter. */
int32_t noc_signal_all(const struct noc_destination *to, uint32_t count, uint8_t flag, uint8_t own_flag, uint16_t tag);

/* Sleep until `flag` has counted `count` more than all earlier waits for it took. 0, or the engine's error code, or
 * NOC_GIVEN_UP. */
int32_t noc_wait(uint32_t flag, uint32_t count);

/* Copy bytes from PE to PE, one of them this one, and sleep until they are there, or on their way if they leave. 0, or
 * the engine's error code. It takes the board's last flag, which no message uses. */
int32_t noc_copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes);

/* Start to fetch bytes from this chip's DRAM, behind all that has been sent, and return at once: no other copy may begin
 * until noc_fetched(). 0, or the engine's error code. */
int32_t noc_fetch(uint32_t from, void *to, uint32_t bytes);

/* Sleep until what noc_fetch() fetches is there. 0, or the engine's error code. */
int32_t noc_fetched(void);

/* Copy bytes, or none, to another PE and wake it once they are there: it finds that it is called. It takes the board's last
 * flag but one, which no message uses either. */
int32_t noc_call(uint32_t pe, uint32_t to, const void *from, uint32_t bytes);

/* Calls of other PEs that have come since reset. */
uint32_t noc_calls(void);

/* Before any other PE runs, where the flags are words in a memory: set them to 0. */
void noc_clear(void);

#endif
