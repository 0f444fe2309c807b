/* The first step, of radix 2. All factors are 1, so numbers are only scaled down before the sums. */
for (int32_t turn = 0; turn < turns; ++turn) {
    const int32_t from = FROM, to = TO;
    const wide a = ((wide)from_0_real * by_two + half) >> bits;
    const wide b = ((wide)from_0_imaginary * by_two + half) >> bits;
    const wide c = ((wide)from_1_real * by_two + half) >> bits;
    const wide d = ((wide)from_1_imaginary * by_two + half) >> bits;
    to_0_real = (number)(a + c);
    to_0_imaginary = (number)(b + d);
    to_1_real = (number)(a - c);
    to_1_imaginary = (number)(b - d);
}
