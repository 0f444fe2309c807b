/* The rounded square root, digit by digit in 32 bits: first of the upper half, or of the lower half if the upper is
 * zero, then with the digits of the lower half. The last two digits need 64 bits, because the remainder gets two bits
 * longer. */
for (int32_t at = 0; at < p0_size; ++at) {
    const uint64_t square = p0[at];
    const uint32_t upper = (uint32_t)(square >> 32), most = upper > 0 ? 0xFFFFFFFF : 0xFFFF;
    uint32_t rest = upper > 0 ? upper : (uint32_t)square, root = 0;
    for (uint32_t bit = (uint32_t)1 << 30; bit > 0; bit >>= 2) {
        const uint32_t least = root + bit;
        root >>= 1;
        if (rest >= least) {
            rest -= least;
            root += bit;
        }
    }
    uint64_t left = rest;
    if (upper > 0) {
        uint32_t lower = (uint32_t)square;
        for (int32_t digit = 0; digit < 14; ++digit) {
            const uint32_t least = (root << 2) + 1;
            rest = rest << 2 | lower >> 30;
            lower <<= 2;
            root <<= 1;
            if (rest >= least) {
                rest -= least;
                root += 1;
            }
        }
        left = rest;
        for (int32_t digit = 0; digit < 2; ++digit) {
            const uint64_t least = ((uint64_t)root << 2) + 1;
            left = left << 2 | lower >> 30;
            lower <<= 2;
            root <<= 1;
            if (left >= least) {
                left -= least;
                root += 1;
            }
        }
    }
    root += left > root && root != most ? 1 : 0;
    output[at] = root >> p1[0];
}
