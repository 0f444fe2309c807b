/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the ways of computing a layer on the array. */
#ifndef MLA_DRIVER_H
#define MLA_DRIVER_H

#include "mla.h"
#include "mla_library.h"

/* Sums to turn into results. Word strides of sums: `step` by pixel, `turn` by channel, `plane` by plane; the sums of
 * all `planes` are added. Byte strides of results: `stride` by pixel, `unit` by channel. `more` (addends, or 0) and
 * `to` point to the first channel of the first pixel. */
struct mla_results {
    int32_t *sums;
    const int32_t *channels;
    const struct mla_command *tile;
    int32_t step, turn, pixels, count, planes, plane, stride, unit;
    const int8_t *more;
    int8_t *to;
};

/* Finish sums. The output may overlay the addends. */
void mla_requantise(const struct mla_results *all);

/* Convert a pixel's 16-bit results, none below 0, to int8 of at most `most`. */
void mla_narrow(const uint16_t *from, int8_t *to, int32_t count, int32_t most);

int32_t mla_lines(const struct mla_command *tile);
int32_t mla_windows(const struct mla_command *tile);
int32_t mla_planes(const struct mla_command *tile);

/* Advance by some channels. */
static inline void mla_pass(struct mla_results *results, int32_t channels)
{
    const struct mla_command *tile = results->tile;
    results->sums += channels * results->turn;
    results->channels += CHANNEL_WORDS * channels;
    results->to += channels * results->unit;
    results->more += results->more != 0 ? channels * mla_more_bytes(tile) : 0;
}

/* Take part of the scratch memory, padded to 16 bytes. */
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
