/* A later step of radix 4. Three of each four numbers are multiplied by complex factors, which depend on the place in a
 * span. */
for (int32_t at = 0; at < span; ++at) {
    const int32_t factor = FACTOR;
    const wide cosine_1 = factors[factor], sine_1 = factors[factor + 1];
    const wide cosine_2 = factors[factor + 2], sine_2 = factors[factor + 3];
    const wide cosine_3 = factors[factor + 4], sine_3 = factors[factor + 5];
    for (int32_t turn = 0; turn < turns; ++turn) {
        const int32_t from = FROM, to = TO;
        const wide a = ((wide)from_0_real * by_four + half) >> bits;
        const wide b = ((wide)from_0_imaginary * by_four + half) >> bits;
        const wide real_2 = ((wide)from_2_real * by_four + half) >> bits;
        const wide imaginary_2 = ((wide)from_2_imaginary * by_four + half) >> bits;
        const wide e = (real_2 * cosine_2 - imaginary_2 * sine_2 + half) >> bits;
        const wide f = (real_2 * sine_2 + imaginary_2 * cosine_2 + half) >> bits;
        const wide real_1 = ((wide)from_1_real * by_four + half) >> bits;
        const wide imaginary_1 = ((wide)from_1_imaginary * by_four + half) >> bits;
        const wide c = (real_1 * cosine_1 - imaginary_1 * sine_1 + half) >> bits;
        const wide d = (real_1 * sine_1 + imaginary_1 * cosine_1 + half) >> bits;
        const wide real_3 = ((wide)from_3_real * by_four + half) >> bits;
        const wide imaginary_3 = ((wide)from_3_imaginary * by_four + half) >> bits;
        const wide g = (real_3 * cosine_3 - imaginary_3 * sine_3 + half) >> bits;
        const wide h = (real_3 * sine_3 + imaginary_3 * cosine_3 + half) >> bits;
SUMS
    }
}
