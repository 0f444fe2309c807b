/* Bits by which the largest number can be shifted left without overflow. p1: largest magnitude of each part. TFLite
 * Micro negates -32768 in 16 bits to -32768, the least of all numbers, and takes this as the new maximum. So numbers
 * are compared one by one from the last part with -32768. */
int32_t most = 0, first = p0_size;
for (int32_t part = 0; part < p1_size; ++part) {
    most = p1[part] > most ? p1[part] : most;
    if (p1[part] > 32767) {
        first = part * part_size;
    }
}
for (int32_t at = first; at < p0_size; ++at) {
    most = at == first ? 0 : most;
    if (p0[at] > most) {
        most = p0[at];
    } else if (-p0[at] > most) {
        most = (int16_t)-p0[at];
    }
}
int32_t bits = 15;
for (uint32_t rest = (uint32_t)most; rest > 0; rest >>= 1) {
    bits -= 1;
}
output[0] = bits < 0 || most == 0 ? 0 : bits;
