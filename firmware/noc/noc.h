/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between PEs: DMA descriptors and counted flags. Hardware manual: boards/pe-mesh.md, section 4. */
#ifndef NOC_H
#define NOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum noc_kind { NOC_COPY = 1 };
enum noc_option { NOC_MULTICAST = 1 };
enum { NOC_NO_FLAG = 0xFF };
enum { NOC_NO_MESSAGE = 0xFFFF }; /* tag of a transfer that is no message of the plan */
enum { NOC_GIVEN_UP = -1 }; /* error code of a wait that the host has broken off */
enum { NOC_DRAM = 0x80000000 }; /* PE number of a DRAM: NOC_DRAM + chip */
enum { NOC_THIS_CHIP = 0x40000000 }; /* + n: PE n of the chip of the PE whose DMA copies; + NOC_DRAM: the chip's DRAM */

/* Destination of a multicast. */
struct noc_destination {
    uint32_t pe;
    uint32_t address;
};

/* Two-dimensional copy. With NOC_MULTICAST `destination_pe` is the address of a list of noc_destination and
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
    uint8_t source_flag;      /* of this PE: incremented when the source may be overwritten */
    uint8_t destination_flag; /* of each destination PE: incremented when all bytes are in place */
    uint16_t reserved0;
    uint32_t reserved1;
    uint32_t reserved2;
};

#if UINTPTR_MAX == UINT32_MAX
_Static_assert(sizeof(struct noc_descriptor) == 48, "a descriptor is 12 words");
_Static_assert(sizeof(struct noc_destination) == 8, "two words");
_Static_assert(offsetof(struct noc_descriptor, row_bytes) == 24, "word 6");
_Static_assert(offsetof(struct noc_descriptor, source_flag) == 36, "word 9");
#endif

/* Start a chain and return at once. Retries while the engine's queue is full. Returns 0 or the engine's error code. */
int32_t noc_send(const struct noc_descriptor *first);

/* Increment `flag` of another PE, and `own_flag` of this PE once the signal has left. Returns 0 or the engine's error
 * code. */
int32_t noc_signal(uint32_t pe, uint8_t flag, uint8_t own_flag, uint16_t tag);

/* Signal several PEs at once. The addresses in `to` are ignored. */
int32_t noc_signal_all(const struct noc_destination *to, uint32_t count, uint8_t flag, uint8_t own_flag, uint16_t tag);

/* Sleep until `flag` has `count` increments beyond those that earlier waits consumed. Returns 0, the engine's error
 * code, or NOC_GIVEN_UP. */
int32_t noc_wait(uint32_t flag, uint32_t count);

/* Copy bytes between this PE and another PE, and sleep until they have arrived here or left. Returns 0 or the engine's
 * error code. Uses the board's last flag, which no message uses. */
int32_t noc_copy(uint32_t from_pe, uint32_t from, uint32_t to_pe, uint32_t to, uint32_t bytes);

/* Start to fetch bytes from this chip's DRAM, behind all earlier chains, and return at once. No other copy may begin
 * before noc_fetched(). Returns 0 or the engine's error code. */
int32_t noc_fetch(uint32_t from, void *to, uint32_t bytes);

/* Sleep until the bytes of noc_fetch() have arrived. Returns 0 or the engine's error code. */
int32_t noc_fetched(void);

/* Copy bytes, or none, to another PE, then wake it by incrementing its call flag, the board's last but one, which no
 * message uses. Returns 0 or the engine's error code. */
int32_t noc_call(uint32_t pe, uint32_t to, const void *from, uint32_t bytes);

/* Calls received from other PEs since reset. */
uint32_t noc_calls(void);

/* Set all flags to 0, on boards whose flags are words of memory. Call before any other PE runs. */
void noc_clear(void);

#endif
