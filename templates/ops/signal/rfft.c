/* A Fourier transform of real numbers as one of half as many complex ones, the even and the odd, in a step of radix 2 if
need be, then in steps of radix 4. Of each number the real part lies before the imaginary one. p1: the order of the
inputs; p2 and p3: the factors of the steps, and of the last one. Each step scales down, so that nothing overflows. */
number *values = (number *)((void *)work);
const wide by_two = largest / 2, by_four = largest / 4;
for (int32_t row = 0; row < rows; ++row) {
    for (int32_t at = 0; at < points; ++at) {
        const int32_t from = 2 * p1[at];
        values[2 * at] = from < length ? p0[row * length + from] : 0;
        values[2 * at + 1] = from + 1 < length ? p0[row * length + from + 1] : 0;
    }
    for (int32_t turn = 0; turn < twos; ++turn) {
        number *made = &values[4 * turn];
        const wide a = (made[0] * by_two + half) >> bits;
        const wide b = (made[1] * by_two + half) >> bits;
        const wide e = (made[2] * by_two + half) >> bits;
        const wide f = (made[3] * by_two + half) >> bits;
        const wide c = (e * p2[0] - f * p2[1] + half) >> bits;
        const wide d = (e * p2[1] + f * p2[0] + half) >> bits;
        made[0] = (number)(a + c);
        made[1] = (number)(b + d);
        made[2] = (number)(a - c);
        made[3] = (number)(b - d);
    }
    int32_t span = first_span;
    for (int32_t step = 0; step < fours; ++step) {
        const int32_t stride = points / (2 * span);
        int32_t at = 0;
        number *one = values;
        for (int32_t turn = 0; turn < points / 4; ++turn) {
            number *two = one + 2 * span;
            number *three = two + 2 * span;
            number *four = three + 2 * span;
            const number *factor = p2 + at * stride;
            const wide a = (one[0] * by_four + half) >> bits;
            const wide b = (one[1] * by_four + half) >> bits;
            wide real = (two[0] * by_four + half) >> bits;
            wide imaginary = (two[1] * by_four + half) >> bits;
            wide cosine = factor[0], sine = factor[1];
            const wide c = (real * cosine - imaginary * sine + half) >> bits;
            const wide d = (real * sine + imaginary * cosine + half) >> bits;
            factor += at * stride;
            real = (three[0] * by_four + half) >> bits;
            imaginary = (three[1] * by_four + half) >> bits;
            cosine = factor[0];
            sine = factor[1];
            const wide e = (real * cosine - imaginary * sine + half) >> bits;
            const wide f = (real * sine + imaginary * cosine + half) >> bits;
            factor += at * stride;
            real = (four[0] * by_four + half) >> bits;
            imaginary = (four[1] * by_four + half) >> bits;
            cosine = factor[0];
            sine = factor[1];
            const wide g = (real * cosine - imaginary * sine + half) >> bits;
            const wide h = (real * sine + imaginary * cosine + half) >> bits;
            one[0] = (number)(a + e + c + g);
            one[1] = (number)(b + f + d + h);
            two[0] = (number)(a - e + d - h);
            two[1] = (number)(b - f - c + g);
            three[0] = (number)(a + e - c - g);
            three[1] = (number)(b + f - d - h);
            four[0] = (number)(a - e - d + h);
            four[1] = (number)(b - f + c - g);
            at += 1;
            one += 2;
            if (at == span) {
                at = 0;
                one += 6 * span;
            }
        }
        span *= 4;
    }
    number *spectrum = &output[row * 2 * (points + 1)];
    const wide even = (values[0] * by_two + half) >> bits;
    const wide odd = (values[1] * by_two + half) >> bits;
    spectrum[0] = (number)(even + odd);
    spectrum[2 * points] = (number)(even - odd);
    spectrum[1] = 0;
    spectrum[2 * points + 1] = 0;
    for (int32_t at = 1; at <= points / 2; ++at) {
        const int32_t low = 2 * at, high = 2 * (points - at);
        const wide a = (values[low] * by_two + half) >> bits;
        const wide b = (values[low + 1] * by_two + half) >> bits;
        const wide c = (values[high] * by_two + half) >> bits;
        const wide d = ((number)-values[high + 1] * by_two + half) >> bits;
        const number real = (number)(a + c), imaginary = (number)(b + d);
        const wide e = a - c, f = b - d, g = p3[low - 2], h = p3[low - 1];
        const number turned = (number)((e * g - f * h + half) >> bits);
        const number other = (number)((e * h + f * g + half) >> bits);
        spectrum[low] = (number)((real + turned) >> 1);
        spectrum[low + 1] = (number)((imaginary + other) >> 1);
        spectrum[high] = (number)((real - turned) >> 1);
        spectrum[high + 1] = (number)((other - imaginary) >> 1);
    }
}
