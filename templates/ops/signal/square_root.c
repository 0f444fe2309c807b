for (int32_t at = 0; at < p0_size; ++at) {
    uint64_t rest = p0[at], root = 0, bit = (uint64_t)1 << 62;
    const uint64_t most = rest >> 32 ? 0xFFFFFFFF : 0xFFFF;
    while (bit > rest) {
        bit >>= 2;
    }
    for (; bit > 0; bit >>= 2) {
        const bool fits = rest >= root + bit;
        rest -= fits ? root + bit : 0;
        root = (root >> 1) + (fits ? bit : 0);
    }
    root += rest > root && root != most ? 1 : 0;
    output[at] = (uint32_t)root >> p1[0];
}
