/* The first step, of radix 4. All factors are 1, so numbers are only scaled down before the sums. */
for (int32_t turn = 0; turn < turns; ++turn) {
    const int32_t from = FROM, to = TO;
    const wide a = ((wide)from_0_real * by_four + half) >> bits;
    const wide b = ((wide)from_0_imaginary * by_four + half) >> bits;
    const wide c = ((wide)from_1_real * by_four + half) >> bits;
    const wide d = ((wide)from_1_imaginary * by_four + half) >> bits;
    const wide e = ((wide)from_2_real * by_four + half) >> bits;
    const wide f = ((wide)from_2_imaginary * by_four + half) >> bits;
    const wide g = ((wide)from_3_real * by_four + half) >> bits;
    const wide h = ((wide)from_3_imaginary * by_four + half) >> bits;
SUMS
}
