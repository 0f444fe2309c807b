for (int32_t at = 0; at < output_size; ++at) {
    const int32_t product = ((int32_t)SAMPLE * FACTOR) >> shift;
    output[at] = (int16_t)(product < -32768 ? -32768 : product > 32767 ? 32767 : product);
}
