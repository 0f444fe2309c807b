/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Interface between the emulator and a device in a PE. An accelerator's model needs only this header: the model defines
 * a `struct device_model` and receives a `struct device_place`.
 *
 * Registers are words; a load or store reaches `read` or `write`. The core loads and stores bytes of a scratchpad
 * without the model's notice.
 *
 * A model works by events or by the clock. By events, the model computes at once and asks for `finished` after its
 * cycles. By the clock, `tick` is called for each cycle, and the device asks for the SRAM port cycle by cycle. A clocked
 * model can be the device's own RTL.
 *
 * Unlike the rest of this folder the header may be used under either licence, so that a model's source can be under any
 * licence of its maker's. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdbool.h>
#include <stdint.h>

enum { DEVICE_ABI = 2 };

/* Bytes of a wide access of the SRAM port, at a multiple of 4; most bytes of a narrow access, at any address. */
enum { DEVICE_WIDE = 32, DEVICE_NARROW = 16 };

/* A named number of the board file. */
struct device_figure {
    const char *name;
    int64_t value;
};

/* The PE around the device. */
struct device_host;

typedef void device_access(struct device_host *host, uint32_t address, uint32_t bytes);

/* Services of the PE for a device. Each takes effect at the present cycle. */
struct device_services {
    /* The present cycle. During a register access: the cycle in which the core's instruction starts. */
    uint64_t (*now)(const struct device_host *host);

    /* Call the model's `finished` after `cycles`, plus the cycles in which DMA or a clocked device takes the SRAM port
     * meanwhile. At most a single call may be outstanding. */
    void (*finish_after)(struct device_host *host, uint64_t cycles);

    /* Set the core's event register. Wakes the core from WFE. */
    void (*set_event)(struct device_host *host);

    /* Pend the core's interrupt of this device, by the board file. Without such an interrupt, and on a RISC-V core, set
     * the event register. */
    void (*interrupt)(struct device_host *host);

    /* Add to the PE's count of busy cycles of accelerators. */
    void (*count_busy)(struct device_host *host, uint64_t cycles);

    /* Record an error of the software for the report of the run. */
    void (*report_error)(struct device_host *host, uint32_t code, uint32_t address);

    /* Check a register write that hands memory to the device for reading. Ends the run with a fault of the PE unless a
     * DSB follows the core's last store to memory. */
    void (*take_over)(struct device_host *host);

    /* Report use of the device that the manual leaves undefined. Ends the run with a fault of the PE. The text is
     * `what`, then `of_what`, and the address. */
    void (*undefined)(struct device_host *host, const char *what, const char *of_what, uint32_t address);

    /* Declare memory that the device is about to read, or to write. Useful where `watched` is set. */
    device_access *reads, *writes;

    /* Declare the fetch of a command: the accesses declared next belong to the command. Without a fetch they belong to
     * all work requested by the last store to a register of the device. */
    device_access *fetches;

    /* ---- for clocked models ---- */

    /* Call `tick` for the present cycle and for each later cycle, until a `tick` returns false. */
    void (*clock)(struct device_host *host);

    /* During `tick`: whether the SRAM port is free for the device in this cycle. DMA comes first, then the devices in the
     * order of the board file; last the models by events, and devices beside such a model. */
    bool (*port_free)(const struct device_host *host);

    /* During `tick`: a wide or narrow access of SRAM. The access takes the port for this cycle. An address behind the
     * end of the SRAM counts from its begin. False, without an access, unless the port is free. `strobe`: bytes to
     * write, a bit each. */
    bool (*port_read)(struct device_host *host, uint32_t address, uint32_t bytes, uint8_t *data);
    bool (*port_write)(struct device_host *host, uint32_t address, uint32_t bytes, uint32_t strobe, const uint8_t *data);
};

/* The PE's side of a device: memory, services and figures. */
struct device_place {
    struct device_host *host;
    const struct device_services *services;
    uint8_t *sram; /* address 0 of the PE */
    uint32_t sram_bytes;
    uint8_t *scratchpad; /* memory of the device, with an address for the core; 0: none in the board file */
    uint32_t scratchpad_bytes;
    const struct device_figure *figures;
    uint32_t figure_count;
    bool watched; /* the emulator checks reads and writes, but sees only declared ones */
};

/* A device. `state`: `state_bytes` of zeroed memory for each PE. */
struct device_model {
    uint32_t abi; /* DEVICE_ABI */
    uint32_t state_bytes;
    /* Returns 0, or an error message about the figures. `place` stays valid. */
    const char *(*start)(void *state, const struct device_place *place);
    uint32_t (*read)(void *state, uint32_t offset);
    void (*write)(void *state, uint32_t offset, uint32_t value);
    /* For models by events; 0: none. */
    void (*finished)(void *state);
    /* For clocked models; 0: none. A cycle c ends: the core's accesses in c have happened, `now` is c + 1, and the core
     * sees the effects from c + 1 on. True while the device works: the next cycle is clocked as well. */
    bool (*tick)(void *state);
    /* The board ends; 0: nothing to free. */
    void (*end)(void *state);
};

/* Prefix of a model's definition: `DEVICE_EXPORT const struct device_model NAME_device`. */
#ifdef _WIN32
#define DEVICE_EXPORT __declspec(dllexport)
#else
#define DEVICE_EXPORT __attribute__((visibility("default")))
#endif

#endif
