/* An LSTM in integers: p0 the data, p1 and p2 what the hidden state (8 bits) and the cell (16 bits) begin as, p3 and p4
the weights of data and hidden state for the gates input, forget, cell and output, p5 what their sums begin as, p6 samples of the logistic
function, p7 multiplier and shift of each gate's sums. The result: the hidden state after each step, then the cell. */
int16_t *gates = (int16_t *)((void *)work);
int8_t *hidden = (int8_t *)(gates + 4 * units);
int16_t *cells = output + steps * batch * units;
for (int32_t at = 0; at < batch * units; ++at) {
    cells[at] = p2[at];
}
for (int32_t round = 0; round < steps * batch; ++round) {
    const int32_t step = round / batch, row = round % batch;
    const int32_t place = time_major ? round : row * steps + step;
    for (int32_t unit = 0; unit < units; ++unit) {
        const int32_t before = (time_major ? place - batch : place - 1) * units + unit;
        hidden[unit] = (int8_t)(step > 0 ? output[before] : p1[row * units + unit]);
    }
    for (int32_t gate = 0; gate < 4 * units; ++gate) {
        int32_t total = 0;
        for (int32_t part = 0; part < 2; ++part) {
            const int8_t *values = part == 0 ? &p0[place * width] : hidden;
            const int8_t *weights = part == 0 ? &p3[gate * width] : &p4[gate * units];
            const int32_t length = part == 0 ? width : units;
            int32_t sum = p5[4 * units * part + gate], at = 0;
            for (; at + 3 < length; at += 4) {
                sum += values[at] * weights[at] + values[at + 1] * weights[at + 1];
                sum += values[at + 2] * weights[at + 2] + values[at + 3] * weights[at + 3];
            }
            for (; at < length; ++at) {
                sum += values[at] * weights[at];
            }
            const int32_t *factor = &p7[4 * (gate / units) + 2 * part];
            const int32_t left = factor[1] > 0 ? factor[1] : 0, right = factor[1] < 0 ? -factor[1] : 0;
            const int64_t wide = (int64_t)(int32_t)((uint32_t)sum << left) * factor[0];
            const int32_t high = (int32_t)((wide + (1 << 30)) >> 31);
            const int32_t value = (high + ((1 << right) >> 1) - (right > 0 && high < 0 ? 1 : 0)) >> right;
            total += value > 32767 ? 32767 : value < -32768 ? -32768 : value;
        }
        total = total > 32767 ? 32767 : total < -32768 ? -32768 : total;
        const int32_t bits = gate / units == 2 ? 8 : 9, scaled = 3 * total, size = scaled < 0 ? -scaled : scaled;
        const int32_t index = size >> bits < 255 ? size >> bits : 255, rest = size & ((1 << bits) - 1);
        int32_t found = (p6[index] << bits) + rest * (p6[index < 255 ? index + 1 : 255] - p6[index]);
        if (bits == 9) {
            found = index < 255 ? found : 32767 << 10;
            gates[gate] = (int16_t)((scaled < 0 ? (1 << 25) - found + 511 : found + 512) >> 10);
        } else {
            found = index < 255 ? found : 65535 << 8;
            gates[gate] = (int16_t)((scaled < 0 ? (1 << 23) - found + 127 : found - (1 << 23) + 128) >> 8);
        }
    }
    for (int32_t unit = 0; unit < units; ++unit) {
        int32_t cell = 0;
        for (int32_t part = 0; part < 3; ++part) {
            int32_t first = gates[unit], second = gates[2 * units + unit];
            int32_t multiplier = fresh_multiplier, shift = fresh_shift;
            if (part == 1) {
                first = gates[units + unit];
                second = cells[row * units + unit];
                multiplier = kept_multiplier;
                shift = kept_shift;
            }
            if (part == 2) {
                cell = cell > 32767 ? 32767 : cell < -32768 ? -32768 : cell;
                cell = most > 0 && cell > most ? most : most > 0 && cell < -most ? -most : cell;
                cells[row * units + unit] = (int16_t)cell;
                const int32_t scaled = (cell * cell_factor + ((1 << cell_bits) >> 1)) >> cell_bits;
                const int32_t size = scaled < 0 ? -scaled : scaled, index = size >> 8 < 255 ? size >> 8 : 255;
                int32_t found = (p6[index] << 8) + (size & 255) * (p6[index < 255 ? index + 1 : 255] - p6[index]);
                found = index < 255 ? found : 65535 << 8;
                first = (scaled < 0 ? (1 << 23) - found + 127 : found - (1 << 23) + 128) >> 8;
                second = gates[3 * units + unit];
                multiplier = hidden_multiplier;
                shift = hidden_shift;
            }
            const int32_t left = shift > 0 ? shift : 0, right = shift < 0 ? -shift : 0;
            const int64_t wide = (int64_t)(int32_t)((uint32_t)(first * second) << left) * multiplier;
            const int32_t high = (int32_t)((wide + (1 << 30)) >> 31);
            int32_t value = (high + ((1 << right) >> 1) - (right > 0 && high < 0 ? 1 : 0)) >> right;
            if (part < 2) {
                cell += value > 32767 ? 32767 : value < -32768 ? -32768 : value;
            } else {
                value += hidden_zero;
                output[place * units + unit] = (int16_t)(value > 127 ? 127 : value < -128 ? -128 : value);
            }
        }
    }
}
