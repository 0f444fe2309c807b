/* SPDX-License-Identifier: Apache-2.0 */
/* What every board offers the rest of the firmware: time, sleep, and the host link.
 * One implementation a board family: firmware/hal/NAME.c, NAME being the board file's `hal`. */
#ifndef HAL_H
#define HAL_H

#include <stdbool.h>
#include <stdint.h>

struct hal_counters {
    uint64_t cycles;       /* since reset; 0 where the board cannot tell */
    uint64_t instructions; /* since reset; 0 where the board cannot tell */
    uint64_t asleep;       /* cycles spent asleep */
};

void hal_init(void);
void hal_count(struct hal_counters *counters);

/* The first of them alone. */
uint64_t hal_cycles(void);

/* Start the board again, all of its PEs, once what was sent over the link is on the wire. */
_Noreturn void hal_reset(void);

/* Sleep until something may have happened; may return early. */
void hal_wait(void);

/* The host link. Only the root PE has one. */
bool hal_link_present(void);
bool hal_link_readable(void);
uint8_t hal_link_read(void);
void hal_link_write(uint8_t byte);

/* Whether the host may read there: what it should know of the board and is no memory of the network's. */
bool hal_may_be_read(uint32_t address, uint32_t bytes);

/* Stands for a PE, and means the DRAM of the board's first chip; of the n-th with n more. */
#define HAL_DRAM 0x80000000U

/* Copy from or to another PE's memory. False if there is no way to it, or no such memory. */
bool hal_read_pe(uint32_t pe, uint32_t address, void *to, uint32_t bytes);
bool hal_write_pe(uint32_t pe, uint32_t address, const void *from, uint32_t bytes);

/* Whether the board's loader has started this firmware on trial: it restarts the board, and starts the firmware from
 * before, unless this one confirms itself. Only on the PE with the host link. */
bool hal_is_on_trial(void);
void hal_confirm(void);

/* What confirms: programmed by the firmware into a word of the flash that the loader has chosen. */
#define HAL_CONFIRMED 0xA55A3CC3U

/* This PE's number on the board, 0 where there is only one. */
uint32_t hal_pe(void);

#endif
