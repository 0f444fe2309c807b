/* A gain that falls with the noise. The table p2 has a parabola of three numbers for each power of two. */
for (int32_t at = 0; at < p0_size; ++at) {
    int32_t gain = 0;
    if (p1[at] <= 2) {
        gain = p2[p1[at]];
    } else {
        int32_t bits = 0;
        for (uint32_t rest = p1[at]; rest > 0; rest >>= 1) {
            bits += 1;
        }
        const int32_t first = 4 * bits - 6;
        const int32_t rest = (int32_t)((bits < 11 ? p1[at] << (11 - bits) : p1[at] >> (bits - 11)) & 0x3FF);
        const int32_t slope = ((p2[first + 2] * rest) >> 5) + (int32_t)((uint32_t)p2[first + 1] << 5);
        gain = (int16_t)(((slope * rest + 16384) >> 15) + p2[first]);
    }
    const uint32_t ratio = (uint32_t)(((uint64_t)p0[at] * (uint32_t)gain) >> snr_shift);
    output[at] = ratio < 8192 ? (ratio * ratio) >> 20 : (ratio >> 6) - 64;
}
