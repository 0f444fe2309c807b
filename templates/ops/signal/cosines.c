/* A cosine transform: sums of products with the factors p1, in units of 1/16384. */
for (int32_t at = 0; at < output_size; ++at) {
    int32_t sum = 8192;
    for (int32_t channel = 0; channel < p0_size; ++channel) {
        sum += p1[at * p0_size + channel] * p0[channel];
    }
    output[at] = (int16_t)(sum >> 14);
}
