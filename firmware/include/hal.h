/* SPDX-License-Identifier: Apache-2.0 */
/* Board services for the rest of the firmware: time, sleep, the host link, the memories of other PEs. One
 * implementation per board family: firmware/hal/NAME.c, where NAME is the board file's `hal`. */
#ifndef HAL_H
#define HAL_H

#include <stdbool.h>
#include <stdint.h>

struct hal_counters {
    uint64_t cycles;       /* since reset; 0 if the board has no counter */
    uint64_t instructions; /* since reset; 0 if the board has no counter */
    uint64_t asleep;       /* cycles spent asleep */
};

void hal_init(void);
void hal_count(struct hal_counters *counters);

/* The cycle counter alone. */
uint64_t hal_cycles(void);

/* Restart the board, all of its PEs, once every byte written to the link is on the wire. */
_Noreturn void hal_reset(void);

/* Sleep until an event. May return early. */
void hal_wait(void);

/* The host link. Only the root PE has one. */
bool hal_link_present(void);
bool hal_link_readable(void);
uint8_t hal_link_read(void);
void hal_link_write(uint8_t byte);

/* True if the host may read these bytes, which describe the board and are no memory of the network. */
bool hal_may_be_read(uint32_t address, uint32_t bytes);

/* Number that stands for the DRAM of the board's first chip in place of a PE. HAL_DRAM + n: the DRAM of chip n. */
#define HAL_DRAM 0x80000000U

/* Copy from or to the memory of another PE. False if no route leads to the PE, or no memory is at the address. */
bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes);
bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes);

/* True if the board's loader has started this firmware on trial. Unless the firmware confirms itself, the loader
 * restarts the board with the previous firmware. Only on the PE with the host link. */
bool hal_is_on_trial(void);
void hal_confirm(void);

/* Confirmation mark. The firmware programs it into a word of flash that the loader has chosen. */
#define HAL_CONFIRMED 0xA55A3CC3U

/* This PE's number on the board; 0 on a board with one PE. */
uint32_t hal_pe(void);

#endif
