/* SPDX-License-Identifier: Apache-2.0 */
/* Requantisation of the array's sums to int8. In many layers it takes more of the core's cycles than the products take
 * of the array's. */
#include "mla_driver.h"

#ifdef __ARM_FEATURE_DSP

/* Requantise a channel's sums in a loop. */
#define REQUANTISED                             \
    "add %[value], %[bias], %[value], lsl #1\n" \
    "smmulr %[value], %[value], %[factor]\n"    \
    "add %[value], %[value], %[value], asr #31\n" \
    "add %[value], %[value], %[half]\n"         \
    "asr %[value], %[value], %[right]\n"        \
    "ssat %[value], #8, %[value]\n"             \
    "strb %[value], [%[to]]\n"                  \
    "add %[to], %[to], %[stride]\n"             \
    "subs %[pixels], %[pixels], #1\n"           \
    "bne 1b\n"

/* Requantisation of a channel: `pixels` sums, results `stride` bytes apart. */
struct plain {
    int32_t bias, factor, half, right, stride, pixels;
};

static inline void plain_channel(struct plain how, const int32_t *sums, int32_t step, int8_t *to)
{
    int32_t value;
    __asm__ volatile("1: ldr %[value], [%[sums]]\n"
                     "add %[sums], %[sums], %[step], lsl #2\n" REQUANTISED
                     : [value] "=&r"(value), [sums] "+r"(sums), [to] "+r"(to), [pixels] "+r"(how.pixels)
                     : [step] "r"(step), [stride] "r"(how.stride), [bias] "r"(how.bias), [factor] "r"(how.factor),
                       [half] "r"(how.half), [right] "r"(how.right)
                     : "cc", "memory");
}

/* Sums in two planes, `plane` bytes apart, in words of 16 channels. */
static inline void plain_channel_of_two(struct plain how, const int32_t *sums, int32_t plane, int8_t *to)
{
    int32_t value, more;
    __asm__ volatile("1: ldr %[more], [%[sums], %[plane]]\n"
                     "ldr %[value], [%[sums]], #64\n"
                     "add %[value], %[value], %[more]\n" REQUANTISED
                     : [value] "=&r"(value), [more] "=&r"(more), [sums] "+r"(sums), [to] "+r"(to), [pixels] "+r"(how.pixels)
                     : [plane] "r"(plane), [stride] "r"(how.stride), [bias] "r"(how.bias), [factor] "r"(how.factor),
                       [half] "r"(how.half), [right] "r"(how.right)
                     : "cc", "memory");
}

/* Sums in three planes: most kernels have three lines. */
static inline void plain_channel_of_three(struct plain how, const int32_t *sums, int32_t plane, int8_t *to)
{
    int32_t value, more;
    __asm__ volatile("1: ldr %[more], [%[sums], %[plane]]\n"
                     "ldr %[value], [%[sums], %[plane], lsl #1]\n"
                     "add %[value], %[value], %[more]\n"
                     "ldr %[more], [%[sums]], #64\n"
                     "add %[value], %[value], %[more]\n" REQUANTISED
                     : [value] "=&r"(value), [more] "=&r"(more), [sums] "+r"(sums), [to] "+r"(to), [pixels] "+r"(how.pixels)
                     : [plane] "r"(plane), [stride] "r"(how.stride), [bias] "r"(how.bias), [factor] "r"(how.factor),
                       [half] "r"(how.half), [right] "r"(how.right)
                     : "cc", "memory");
}

static void plain_channels(const struct mla_results *all)
{
    const int32_t zero = all->tile->output_zero, plane = 4 * all->plane, planes = all->planes, turn = all->turn;
    const int32_t *sums = all->sums, *channel = all->channels;
    struct plain how = {.stride = all->stride, .pixels = all->pixels};
    int8_t *to = all->to;
    for (int32_t left = all->count; left > 0; left--, sums += turn, channel += CHANNEL_WORDS, to += all->unit) {
        how.right = -channel[SHIFT];
        how.half = (1 << how.right >> 1) + (zero << how.right);
        how.bias = 2 * channel[BIAS];
        how.factor = channel[MULTIPLIER];
        if (planes == 1) {
            plain_channel(how, sums, all->step, to);
        } else if (planes == 2) {
            plain_channel_of_two(how, sums, plane, to);
        } else {
            plain_channel_of_three(how, sums, plane, to);
        }
    }
}

/* The channels of a single pixel. */
static void plain_pixel(const struct mla_results *all)
{
    const int32_t *sums = all->sums, *channel = all->channels;
    int8_t *to = all->to;
    int32_t value, count = all->count;
    __asm__ volatile("1: ldmia %[channel]!, {r4, r5, r6}\n"
                     "ldr %[value], [%[sums]], #4\n"
                     "rsb r6, r6, #0\n"
                     "add %[value], %[value], r4\n"
                     "lsl r4, %[zeros], r6\n"
                     "lsl %[value], %[value], #1\n"
                     "smmulr %[value], %[value], r5\n"
                     "add %[value], %[value], %[value], asr #31\n"
                     "add %[value], %[value], r4, asr #1\n"
                     "asr %[value], %[value], r6\n"
                     "ssat %[value], #8, %[value]\n"
                     "strb %[value], [%[to]], #1\n"
                     "subs %[count], %[count], #1\n"
                     "bne 1b\n"
                     : [value] "=&r"(value), [sums] "+r"(sums), [channel] "+r"(channel), [to] "+r"(to), [count] "+r"(count)
                     : [zeros] "r"(2 * all->tile->output_zero + 1)
                     : "r4", "r5", "r6", "cc", "memory");
}

static int32_t finish_plain(const struct mla_results *all)
{
    if (!all->tile->plain || all->planes > 3 || (all->planes > 1 && all->step != MLA_WIDTH)) {
        return 0;
    }
    if (all->pixels == 1 && all->planes == 1 && all->turn == 1 && all->unit == 1 && all->count > 0) {
        plain_pixel(all);
    } else {
        plain_channels(all);
    }
    return 1;
}

#else

static int32_t finish_plain(const struct mla_results *all)
{
    (void)all;
    return 0;
}

#endif

static int32_t sum_of(const struct mla_results *all, const int32_t *sums)
{
    int32_t sum = 0;
    for (int32_t plane = 0; plane < all->planes; plane++) {
        sum += sums[plane * all->plane];
    }
    return sum;
}

static void channel_of_any(const struct mla_results *all, const int32_t *sums, const int32_t *channel, int8_t *to)
{
    const struct mla_stage stage = mla_stage(channel, all->tile);
    for (int32_t i = 0; i < all->pixels; i++) {
        *to = mla_finished(sum_of(all, sums), stage);
        sums += all->step;
        to += all->stride;
    }
}

static inline void to_bytes(const struct mla_results *all)
{
    if (finish_plain(all)) {
        return;
    }
    const int32_t *sums = all->sums, *channel = all->channels;
    int8_t *to = all->to;
    for (int32_t c = 0; c < all->count; c++, sums += all->turn, channel += CHANNEL_WORDS, to += all->unit) {
        channel_of_any(all, sums, channel, to);
    }
}

/* ---- what is added, of ways in which the channels of a pixel lie side by side ---- */

static const int8_t *more_of(const struct mla_results *all, int32_t pixel)
{
    return all->more + pixel * all->tile->more_pixel_stride;
}

/* Add kept sums to the first plane. */
static void add_kept(const struct mla_results *all)
{
    const int32_t count = all->count;
    for (int32_t pixel = 0; pixel < all->pixels; pixel++) {
        const int32_t *more = (const int32_t *)(const void *)more_of(all, pixel);
        int32_t *sums = all->sums + pixel * all->step;
        for (int32_t c = 0; c < count; c++) {
            sums[c] += more[c];
        }
    }
}

static inline int32_t sum_of_planes(const int32_t *sums, int32_t planes, int32_t plane)
{
    if (planes == 3) { /* most kernels have three lines */
        return sums[0] + sums[plane] + sums[2 * plane];
    }
    int32_t sum = 0;
    for (; planes > 0; planes--, sums += plane) {
        sum += *sums;
    }
    return sum;
}

/* Write sums with their biases, without requantisation. */
static void keep(const struct mla_results *all)
{
    const int32_t count = all->count, planes = all->planes, plane = all->plane;
    for (int32_t pixel = 0; pixel < all->pixels; pixel++) {
        const int32_t *sums = all->sums + pixel * all->step, *bias = all->channels + BIAS;
        int32_t *to = (int32_t *)(void *)(all->to + pixel * all->stride);
        for (int32_t c = 0; c < count; c++, bias += CHANNEL_WORDS) {
            to[c] = sum_of_planes(sums + c, planes, plane) + *bias;
        }
    }
}

#ifdef __ARM_FEATURE_DSP

/* Add the result and the addend of each channel of a pixel; the table has the share of `looked_up`. */
#define ADDED(looked_up, other)                              \
    __asm__ volatile("1: ldrsb %[value], " looked_up "\n"     \
                     "ldrsb %[more], " other "\n"             \
                     "ldr %[value], [%[shares], %[value], lsl #2]\n" \
                     "subs %[count], %[count], #1\n"          \
                     "add %[value], %[value], %[more], lsl #20\n" \
                     "smmulr %[value], %[value], %[factor]\n" \
                     "add %[value], %[value], %[value], asr #31\n" \
                     "add %[value], %[value], %[half]\n"      \
                     "asr %[value], %[value], %[right]\n"     \
                     "ssat %[value], #8, %[value]\n"          \
                     "strb %[value], [%[to]], #1\n"           \
                     "bne 1b\n"                               \
                     : [value] "=&r"(value), [more] "=&r"(second), [results] "+r"(results), [added] "+r"(added), [to] "+r"(to), \
                       [count] "+r"(count)                    \
                     : [shares] "r"(addition + SHARES + 128), [factor] "r"(addition[SUM_MULTIPLIER]), \
                       [half] "r"((1 << right >> 1) + addition[SUM_ZERO] * (1 << right)), [right] "r"(right) \
                     : "cc", "memory")

static int32_t add_plain(const int32_t *addition, const int32_t *words, const int8_t *added, int8_t *to, int32_t count)
{
    const int8_t *results = (const int8_t *)(const void *)words;
    const int32_t right = addition[SUM_RIGHT];
    int32_t value, second;
    if (right < 1 || addition[SUM_LOW] != INT8_MIN || addition[SUM_HIGH] != INT8_MAX) {
        return 0;
    }
    if (addition[LOOKS_RESULT_UP]) {
        ADDED("[%[results]], #4", "[%[added]], #1");
    } else {
        ADDED("[%[added]], #1", "[%[results]], #4");
    }
    return 1;
}

#else

static int32_t add_plain(const int32_t *addition, const int32_t *words, const int8_t *added, int8_t *to, int32_t count)
{
    (void)addition, (void)words, (void)added, (void)to, (void)count;
    return 0;
}

#endif

/* Add the addends to results, each a byte in the word of its sum. */
static void add_results(const struct mla_results *all)
{
    const int32_t *addition = all->tile->addition;
    for (int32_t pixel = 0; pixel < all->pixels; pixel++) {
        const int32_t *words = all->sums + pixel * all->step;
        const int8_t *more = more_of(all, pixel);
        int8_t *to = all->to + pixel * all->stride;
        if (!add_plain(addition, words, more, to, all->count)) {
            for (int32_t c = 0; c < all->count; c++) {
                to[c] = mla_added(*(const int8_t *)(const void *)(words + c), more[c], addition);
            }
        }
    }
}

/* Write results as bytes into the words of their sums, then add the addends. */
static void to_added_bytes(const struct mla_results *all)
{
    struct mla_results bytes = *all;
    bytes.to = (int8_t *)(void *)all->sums;
    bytes.stride = 4 * all->step;
    bytes.unit = 4 * all->turn;
    to_bytes(&bytes);
    add_results(all);
}

/* A separate function, to keep the usual path short of registers. */
static void __attribute__((noinline)) finish_with_more(const struct mla_results *all)
{
    const struct mla_command *tile = all->tile;
    if (all->count == 0) {
        return;
    }
    if (all->more != 0 && tile->addition == 0) {
        add_kept(all);
    }
    if (tile->raw) {
        keep(all);
    } else if (tile->addition != 0) {
        to_added_bytes(all);
    } else {
        to_bytes(all);
    }
}

void mla_requantise(const struct mla_results *all)
{
    if (all->more != 0 || all->tile->raw) {
        finish_with_more(all);
    } else {
        to_bytes(all);
    }
}

/* ---- what the array has shifted ---- */

#ifdef __ARM_FEATURE_DSP
/* Narrow four values at a time: clamp to 7 bits, pack into bytes, clamp to `most`. */
static int32_t narrow_fours(const uint16_t *from, int8_t *to, int32_t count, uint32_t spare)
{
    int32_t left = count / 4;
    uint32_t low, high;
    if (left == 0 || ((uintptr_t)to & 3U) != 0) {
        return 0;
    }
    __asm__ volatile("1: ldrd %[low], %[high], [%[from]], #8\n"
                     "usat16 %[low], #7, %[low]\n"
                     "usat16 %[high], #7, %[high]\n"
                     "orr %[low], %[low], %[low], lsr #8\n"
                     "orr %[high], %[high], %[high], lsr #8\n"
                     "pkhbt %[low], %[low], %[high], lsl #16\n"
                     "uqadd8 %[low], %[low], %[spare]\n"
                     "sub %[low], %[low], %[spare]\n"
                     "str %[low], [%[to]], #4\n"
                     "subs %[left], %[left], #1\n"
                     "bne 1b\n"
                     : [low] "=&r"(low), [high] "=&r"(high), [from] "+r"(from), [to] "+r"(to), [left] "+r"(left)
                     : [spare] "r"(spare * 0x01010101U)
                     : "cc", "memory");
    return count / 4 * 4;
}
#else
static int32_t narrow_fours(const uint16_t *from, int8_t *to, int32_t count, uint32_t spare)
{
    (void)from, (void)to, (void)count, (void)spare;
    return 0;
}
#endif

void mla_narrow(const uint16_t *from, int8_t *to, int32_t count, int32_t most)
{
    for (int32_t i = narrow_fours(from, to, count, (uint32_t)(255 - most)); i < count; i++) {
        to[i] = (int8_t)mla_smaller(from[i], most);
    }
}
