/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Interface between the emulator and a model of the network-on-chip: the DMA of each PE, all routers, links between
 * chips and DRAMs. The model can be the network's own RTL. It moves the bytes. The emulator's network runs beside the
 * model, and each cycle must be the same in both.
 *
 * Like device.h the header may be used under either licence. */
#ifndef NETWORK_DEVICE_H
#define NETWORK_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "device.h"

enum { NETWORK_ABI = 1 };

/* A place with memory: a PE, or the DRAM of chip n at NETWORK_DRAM + n. */
#define NETWORK_DRAM 0x80000000U

/* What a PE shows from a cycle on. */
enum network_event {
    NETWORK_COUNTED, /* a flag has counted; `number`: the flag */
    NETWORK_DONE,    /* a descriptor is done */
    NETWORK_FAILED,  /* ERROR was 0; `number`: its value */
    NETWORK_WOKEN,   /* the core's event register is set */
    NETWORK_EVENTS
};

/* The board around the network. */
struct network_host;

struct network_services {
    /* The present cycle. During a register access: the cycle in which the core's instruction starts. */
    uint64_t (*now)(const struct network_host *host);

    /* Call `tick` for the present cycle and for each later cycle, until a `tick` returns false. */
    void (*clock)(struct network_host *host);

    /* The memory of a place. */
    const uint8_t *(*memory)(struct network_host *host, uint32_t place);

    /* ---- during `tick` ---- */

    /* Write bytes to a place. `strobe`: the bytes to write, a bit each. */
    void (*store)(struct network_host *host, uint32_t place, uint32_t address, uint32_t strobe, const uint8_t *data);

    /* The DMA of a PE has moved bytes through the SRAM port in the cycle that ends. */
    void (*took_port)(struct network_host *host, uint32_t pe);

    /* A PE shows an event from the present cycle on. */
    void (*happened)(struct network_host *host, uint32_t pe, enum network_event event, uint32_t number);

    /* Stop the board: an assertion of the model does not hold. */
    void (*failed)(struct network_host *host, uint32_t pe, const char *where);
};

/* The network's side: services, and the board's figures by the names in the board file. */
struct network_place {
    struct network_host *host;
    const struct network_services *services;
    const struct device_figure *figures;
    uint32_t figure_count;
};

struct network_model {
    uint32_t abi; /* NETWORK_ABI */
    /* Returns the state, which `end` frees. `place` stays valid. */
    void *(*start)(const struct network_place *place);
    /* Registers of the DMA of a PE. */
    uint32_t (*read)(void *state, uint32_t pe, uint32_t offset);
    void (*write)(void *state, uint32_t pe, uint32_t offset, uint32_t value);
    /* A cycle c ends: the cores' accesses in c have happened, `now` is c + 1, and cores see the effects from c + 1 on.
     * True while the network works: the next cycle is clocked as well. */
    bool (*tick)(void *state);
    void (*end)(void *state);
};

#endif
