/* Gate activations of a step of an integer LSTM: input, forget, cell and output gate of each unit. p0: sums of the
 * data; p1: sums of the hidden state; p2: biases added to p0; p3: multiplier and shift of each gate's sums; p4: samples
 * of the logistic function. Units are computed independently, so PEs can share them. */
for (int32_t row = 0; row < batch; ++row) {
    for (int32_t unit = 0; unit < units; ++unit) {
        for (int32_t gate = 0; gate < 4; ++gate) {
            int32_t first = p0[(row * units + unit) * 4 + gate] + p2[unit * 4 + gate];
            int32_t second = p1[(row * units + unit) * 4 + gate];
            int32_t total = 0;
            for (int32_t part = 0; part < 2; ++part) {
                const int32_t sum = part == 0 ? first : second;
                const int32_t shift = p3[gate * 4 + part * 2 + 1];
                const int32_t left = shift > 0 ? shift : 0;
                const int32_t right = shift < 0 ? -shift : 0;
                const int64_t wide = (int64_t)(int32_t)((uint32_t)sum << left) * p3[gate * 4 + part * 2];
                const int32_t high = (int32_t)((wide + (1 << 30)) >> 31);
                const int32_t value = (high + ((1 << right) >> 1) - (right > 0 && high < 0 ? 1 : 0)) >> right;
                total += value > 32767 ? 32767 : value < -32768 ? -32768 : value;
            }
            total = total > 32767 ? 32767 : total < -32768 ? -32768 : total;
            const int32_t bits = gate == 2 ? 8 : 9;
            const int32_t scaled = 3 * total;
            const int32_t size = scaled < 0 ? -scaled : scaled;
            const int32_t index = size >> bits < 254 ? size >> bits : 254;
            const int32_t step = (size & ((1 << bits) - 1)) * (p4[index + 1] - p4[index]);
            const int32_t most = gate == 2 ? 65535 << 8 : 32767 << 10;
            const int32_t found = size >> bits < 255 ? (p4[index] << bits) + step : most;
            const int32_t tangent = scaled < 0 ? (1 << 23) - found + 127 : found - (1 << 23) + 128;
            const int32_t logistic = scaled < 0 ? (1 << 25) - found + 511 : found + 512;
            output[(row * units + unit) * 4 + gate] = (int16_t)(gate == 2 ? tangent >> 8 : logistic >> 10);
        }
    }
}
