/* Each frequency counts for a channel by its weight (p1), and for the next channel by the rest of the weight (p2). A
 * result sums the rests of a channel and the weights of the next one. */
for (int32_t channel = 0; channel < num_channels; ++channel) {
    const int32_t next = channel + 1;
    uint64_t sum = 0;
    for (int32_t at = 0; at < p5[channel]; ++at) {
        sum += (uint64_t)(uint32_t)p2[p4[channel] + at] * p0[p3[channel] + at];
    }
    for (int32_t at = 0; at < p5[next]; ++at) {
        sum += (uint64_t)(uint32_t)p1[p4[next] + at] * p0[p3[next] + at];
    }
    output[channel] = sum;
}
