/* A step of radix 4: of each four numbers three are turned, where their factors are not 1. */
for (int32_t at = 0; at < span; ++at) {
FACTORS
    for (int32_t turn = 0; turn < turns; ++turn) {
PLACES
        const wide a = ((wide)from_0_real * by_four + half) >> bits;
        const wide b = ((wide)from_0_imaginary * by_four + half) >> bits;
        const wide real_2 = ((wide)from_2_real * by_four + half) >> bits;
        const wide imaginary_2 = ((wide)from_2_imaginary * by_four + half) >> bits;
        const wide e = turned_2_real;
        const wide f = turned_2_imaginary;
        const wide real_1 = ((wide)from_1_real * by_four + half) >> bits;
        const wide imaginary_1 = ((wide)from_1_imaginary * by_four + half) >> bits;
        const wide c = turned_1_real;
        const wide d = turned_1_imaginary;
        const wide real_3 = ((wide)from_3_real * by_four + half) >> bits;
        const wide imaginary_3 = ((wide)from_3_imaginary * by_four + half) >> bits;
        const wide g = turned_3_real;
        const wide h = turned_3_imaginary;
        to_0_real = (number)(a + e + c + g);
        to_0_imaginary = (number)(b + f + d + h);
        to_1_real = (number)(a - e + d - h);
        to_1_imaginary = (number)(b - f - c + g);
        to_2_real = (number)(a + e - c - g);
        to_2_imaginary = (number)(b + f - d - h);
        to_3_real = (number)(a - e - d + h);
        to_3_imaginary = (number)(b - f + c - g);
    }
}
