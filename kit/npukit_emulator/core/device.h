/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * What a device in a PE and the emulator know of each other. An accelerator's model needs this header and nothing else:
 * it gives a `struct device_model` and is given a `struct device_place`.
 *
 * Unlike the rest of this folder the header may be used under either licence, so that a model's source can be under
 * any licence of its maker's. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_ABI = 1 };

/* A number of the board file, by its name there. */
struct device_figure {
    const char *name;
    int64_t value;
};

/* The PE around the device. */
struct device_host;

typedef void device_access(struct device_host *host, uint32_t address, uint32_t bytes);

/* What a device may ask of its PE. All of it happens at the present cycle. */
struct device_services {
    /* The present cycle: in a register access, the one in which the core's instruction starts. */
    uint64_t (*now)(const struct device_host *host);

    /* Call the model's `finished` when so many cycles have passed. Cycles in which DMA takes the SRAM port meanwhile
     * are added. One call may be outstanding. */
    void (*finish_after)(struct device_host *host, uint64_t cycles);

    /* Set the core's event register, which wakes it from WFE. */
    void (*set_event)(struct device_host *host);

    /* Add to the PE's count of cycles in which its accelerators worked. */
    void (*count_busy)(struct device_host *host, uint64_t cycles);

    /* Something the software did wrong; kept for the report of the run. */
    void (*report_error)(struct device_host *host, uint32_t code, uint32_t address);

    /* In a register's write: the core hands memory over to the device, which is about to read it. Ends the run with a
     * fault of the PE unless a DSB came after its last store to memory. */
    void (*take_over)(struct device_host *host);

    /* The software asks for what the device's manual leaves undefined: ends the run with a fault of the PE, which says
     * `what` and `of_what`, one behind the other, and the address. */
    void (*undefined)(struct device_host *host, const char *what, const char *of_what, uint32_t address);

    /* What the device is about to read, or to write: of use where `watched` is set. */
    device_access *reads, *writes;

    /* It fetches a command: what it reads and writes from now on, it does for that one. Else it does so for all that was
     * asked for by the last store to a register of it. */
    device_access *fetches;
};

/* Where a device sits: what it works on. */
struct device_place {
    struct device_host *host;
    const struct device_services *services;
    uint8_t *sram; /* address 0 of the PE */
    uint32_t sram_bytes;
    const struct device_figure *figures;
    uint32_t figure_count;
    bool watched; /* the emulator looks at what is read and written; what a device does not declare goes unseen */
};

/* A device. `state` is `state_bytes` of zeroed memory of its own for each PE. */
struct device_model {
    uint32_t abi; /* DEVICE_ABI */
    uint32_t state_bytes;
    /* Returns 0, or what is wrong with the figures. `place` stays valid. */
    const char *(*start)(void *state, const struct device_place *place);
    uint32_t (*read)(void *state, uint32_t offset);
    void (*write)(void *state, uint32_t offset, uint32_t value);
    void (*finished)(void *state);
};

/* Before the definition of a model, which is named NAME_device: `DEVICE_EXPORT const struct device_model NAME_device`. */
#ifdef _WIN32
#define DEVICE_EXPORT __declspec(dllexport)
#else
#define DEVICE_EXPORT __attribute__((visibility("default")))
#endif

#endif
