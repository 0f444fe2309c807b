/* SPDX-License-Identifier: Apache-2.0 */
/* What the ways of computing a layer on the array have in common. */
#ifndef MLA_DRIVER_H
#define MLA_DRIVER_H

#include "mla.h"
#include "mla_library.h"

/* Sums that become results. A pixel's lies from the next one's `step` words away, a channel's `turn`; each is spread over so
 * many `planes`, `plane` words apart. `more`, if there is any, and `to` are the first pixel's first channel; results lie
 * `stride` bytes apart by pixel, `unit` by channel. */
struct mla_results {
    int32_t *sums;
    const int32_t *channels;
    const struct mla_command *tile;
    int32_t step, turn, pixels, count, planes, plane, stride, unit;
    const int8_t *more;
    int8_t *to;
};

/* Finish sums. What is added to them, or to their results, may lie where the output does. */
void mla_requantise(const struct mla_results *all);

/* A pixel's results of 16 bits, none below 0, as int8 of at most `most`. */
void mla_narrow(const uint16_t *from, int8_t *to, int32_t count, int32_t most);

int32_t mla_lines(const struct mla_command *tile);
int32_t mla_windows(const struct mla_command *tile);
int32_t mla_planes(const struct mla_command *tile);

/* Go some channels further on. */
static inline void mla_pass(struct mla_results *results, int32_t channels)
{
    const struct mla_command *tile = results->tile;
    results->sums += channels * results->turn;
    results->channels += CHANNEL_WORDS * channels;
    results->to += channels * results->unit;
    results->more += results->more != 0 ? channels * mla_more_bytes(tile) : 0;
}

/* A part of the scratch memory, in whole 16 bytes. */
static inline int8_t *mla_room(int8_t **scratch, int32_t bytes)
{
    int8_t *place = *scratch;
    *scratch += mla_padded(bytes, MLA_WIDTH);
    return place;
}

static inline int32_t mla_smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

#endif
