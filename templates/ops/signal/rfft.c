/* A Fourier transform of real numbers as one of half as many complex ones, the even and the odd, in steps of radix 4
and 2. Of each number the real part lies before the imaginary one. p1: the order of the inputs; p2 and p3: the factors
of the steps, and of the last one; p4: the radix of each step. Each step scales down, so that nothing overflows. */
number *values = (number *)((void *)work);
for (int32_t row = 0; row < rows; ++row) {
    for (int32_t at = 0; at < 2 * points; ++at) {
        const int32_t from = 2 * p1[at / 2] + at % 2;
        values[at] = from < length ? p0[row * length + from] : 0;
    }
    int32_t span = 1;
    for (int32_t step = 0; step < p4_size; ++step) {
        const int32_t radix = p4[step], stride = points / (span * radix);
        const int32_t legs = radix == 2 ? radix : 4;
        const int32_t turns = radix == 2 ? points / radix : points / 4;
        const wide share = largest / radix;
        int32_t first = 0, at = 0;
        for (int32_t turn = 0; turn < turns; ++turn) {
            number real[4], imaginary[4];
            for (int32_t leg = 0; leg < legs; ++leg) {
                const int32_t here = 2 * (first + leg * span + at), factor = 2 * leg * at * stride;
                real[leg] = (number)((values[here] * share + half) >> bits);
                imaginary[leg] = (number)((values[here + 1] * share + half) >> bits);
                if (leg > 0) {
                    const wide a = real[leg], b = imaginary[leg], c = p2[factor], d = p2[factor + 1];
                    real[leg] = (number)((a * c - b * d + half) >> bits);
                    imaginary[leg] = (number)((a * d + b * c + half) >> bits);
                }
            }
            number *made = &values[2 * (first + at)];
            if (radix == 2) {
                made[0] = (number)(real[0] + real[1]);
                made[1] = (number)(imaginary[0] + imaginary[1]);
                made[2 * span] = (number)(real[0] - real[1]);
                made[2 * span + 1] = (number)(imaginary[0] - imaginary[1]);
            } else {
                made[0] = (number)(real[0] + real[2] + real[1] + real[3]);
                made[1] = (number)(imaginary[0] + imaginary[2] + imaginary[1] + imaginary[3]);
                made[2 * span] = (number)(real[0] - real[2] + imaginary[1] - imaginary[3]);
                made[2 * span + 1] = (number)(imaginary[0] - imaginary[2] - real[1] + real[3]);
                made[4 * span] = (number)(real[0] + real[2] - real[1] - real[3]);
                made[4 * span + 1] = (number)(imaginary[0] + imaginary[2] - imaginary[1] - imaginary[3]);
                made[6 * span] = (number)(real[0] - real[2] - imaginary[1] + imaginary[3]);
                made[6 * span + 1] = (number)(imaginary[0] - imaginary[2] + real[1] - real[3]);
            }
            at += 1;
            if (at == span) {
                at = 0;
                first += span * radix;
            }
        }
        span *= radix;
    }
    number *spectrum = &output[row * 2 * (points + 1)];
    const wide share = largest / 2;
    const number even = (number)((values[0] * share + half) >> bits);
    const number odd = (number)((values[1] * share + half) >> bits);
    spectrum[0] = (number)(even + odd);
    spectrum[2 * points] = (number)(even - odd);
    spectrum[1] = 0;
    spectrum[2 * points + 1] = 0;
    for (int32_t at = 1; at <= points / 2; ++at) {
        const int32_t low = 2 * at, high = 2 * (points - at);
        const number a = (number)((values[low] * share + half) >> bits);
        const number b = (number)((values[low + 1] * share + half) >> bits);
        const number c = (number)((values[high] * share + half) >> bits);
        const number d = (number)(((number)-values[high + 1] * share + half) >> bits);
        const number real = (number)(a + c), imaginary = (number)(b + d);
        const wide e = (number)(a - c), f = (number)(b - d), g = p3[low - 2], h = p3[low - 1];
        const number turned = (number)((e * g - f * h + half) >> bits);
        const number other = (number)((e * h + f * g + half) >> bits);
        spectrum[low] = (number)((real + turned) >> 1);
        spectrum[low + 1] = (number)((imaginary + other) >> 1);
        spectrum[high] = (number)((real - turned) >> 1);
        spectrum[high + 1] = (number)((other - imaginary) >> 1);
    }
}
