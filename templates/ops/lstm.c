/* The gates of a step of an LSTM in integers, opened: input, forget, cell and output of each unit. p0 the data, p1 the
hidden state, p2 and p3 the weights of both for each unit's gates, p4 what their sums begin as, p5 multiplier and shift of
each gate's sums, p6 samples of the logistic function. Each unit is made by itself, so that PEs share them. */
for (int32_t row = 0; row < batch; ++row) {
    for (int32_t unit = 0; unit < units; ++unit) {
        for (int32_t gate = 0; gate < 4; ++gate) {
            int32_t first = p4[(unit * 4 + gate) * 2];
            int32_t second = p4[(unit * 4 + gate) * 2 + 1];
            int32_t begin = (unit * 4 + gate) * width;
            for (int32_t four = 0; four < width_fours; ++four) {
                int32_t at = row * width + four * 4;
                int32_t of = begin + four * 4;
                first += p0[at] * p2[of] + p0[at + 1] * p2[of + 1];
                first += p0[at + 2] * p2[of + 2] + p0[at + 3] * p2[of + 3];
            }
            for (int32_t at = width_begin; at < width; ++at) {
                first += p0[row * width + at] * p2[begin + at];
            }
            int32_t start = (unit * 4 + gate) * units;
            for (int32_t four = 0; four < units_fours; ++four) {
                int32_t at = row * units + four * 4;
                int32_t of = start + four * 4;
                second += p1[at] * p3[of] + p1[at + 1] * p3[of + 1];
                second += p1[at + 2] * p3[of + 2] + p1[at + 3] * p3[of + 3];
            }
            for (int32_t at = units_begin; at < units; ++at) {
                second += p1[row * units + at] * p3[start + at];
            }
            int32_t total = 0;
            for (int32_t part = 0; part < 2; ++part) {
                const int32_t sum = part == 0 ? first : second;
                const int32_t shift = p5[gate * 4 + part * 2 + 1];
                const int32_t left = shift > 0 ? shift : 0;
                const int32_t right = shift < 0 ? -shift : 0;
                const int64_t wide = (int64_t)(int32_t)((uint32_t)sum << left) * p5[gate * 4 + part * 2];
                const int32_t high = (int32_t)((wide + (1 << 30)) >> 31);
                const int32_t value = (high + ((1 << right) >> 1) - (right > 0 && high < 0 ? 1 : 0)) >> right;
                total += value > 32767 ? 32767 : value < -32768 ? -32768 : value;
            }
            total = total > 32767 ? 32767 : total < -32768 ? -32768 : total;
            const int32_t bits = gate == 2 ? 8 : 9;
            const int32_t scaled = 3 * total;
            const int32_t size = scaled < 0 ? -scaled : scaled;
            const int32_t index = size >> bits < 254 ? size >> bits : 254;
            const int32_t step = (size & ((1 << bits) - 1)) * (p6[index + 1] - p6[index]);
            const int32_t most = gate == 2 ? 65535 << 8 : 32767 << 10;
            const int32_t found = size >> bits < 255 ? (p6[index] << bits) + step : most;
            const int32_t tangent = scaled < 0 ? (1 << 23) - found + 127 : found - (1 << 23) + 128;
            const int32_t logistic = scaled < 0 ? (1 << 25) - found + 511 : found + 512;
            output[(row * units + unit) * 4 + gate] = (int16_t)(gate == 2 ? tangent >> 8 : logistic >> 10);
        }
    }
}
