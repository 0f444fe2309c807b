/* Each frequency belongs to a channel by its weight, and to the next one by the rest. */
uint64_t sum = 0;
for (int32_t channel = 0; channel <= num_channels; ++channel) {
    const int32_t frequency = p3[channel], weight = p4[channel];
    uint64_t rest = 0;
    for (int32_t at = 0; at < p5[channel]; ++at) {
        sum += (uint64_t)(uint32_t)p1[weight + at] * p0[frequency + at];
        rest += (uint64_t)(uint32_t)p2[weight + at] * p0[frequency + at];
    }
    if (channel > 0) {
        output[channel - 1] = sum;
    }
    sum = rest;
}
