/* The transform of real numbers, from the complex transform of half the size, whose real and imaginary parts were the
 * even and the odd numbers. The second half mirrors the first, with the factors p1. The input lies in `columns` rows,
 * in the order of the last transform step. */
for (int32_t row = 0; row < rows; ++row) {
    const int32_t begin = FRAME * points, at = PLACE;
    const int32_t sign = 2 * at < points ? 1 : -1;
    const int32_t place = sign > 0 ? at : points - at, mirrored = points - place;
    const int32_t low = 2 * (begin + (place & (columns - 1)) * size + (place >> column_bits));
    const wide a = ((wide)p0[low] * by_two + half) >> bits;
    const wide b = ((wide)p0[low + 1] * by_two + half) >> bits;
    if (place == 0) {
        output[2 * row] = (number)(a + sign * b);
        output[2 * row + 1] = 0;
    } else {
        const int32_t high = 2 * (begin + (mirrored & (columns - 1)) * size + (mirrored >> column_bits));
        const wide c = ((wide)p0[high] * by_two + half) >> bits;
        const wide d = ((wide)(number)-p0[high + 1] * by_two + half) >> bits;
        const number real = (number)(a + c), imaginary = (number)(b + d);
        const wide e = a - c, f = b - d, cosine = p1[2 * place - 2], sine = p1[2 * place - 1];
        const number turned = (number)((e * cosine - f * sine + half) >> bits);
        const number other = (number)((e * sine + f * cosine + half) >> bits);
        output[2 * row] = (number)((real + sign * turned) >> 1);
        output[2 * row + 1] = (number)((other + sign * imaginary) >> 1);
    }
}
