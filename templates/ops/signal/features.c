/* Features of sound: for each window the logarithms of the energies of a filter bank, or a cosine transform of these.
Words in capitals are the C of other files, and what says where samples and results are. */
int16_t *const windowed = (int16_t *)((void *)&work[windowed_at]);
int16_t *const transformed = (int16_t *)((void *)&work[transformed_at]);
uint32_t *const energies = (uint32_t *)((void *)&work[energies_at]);
uint64_t *const sums = (uint64_t *)((void *)&work[sums_at]);
uint32_t *const roots = (uint32_t *)((void *)&work[roots_at]);
for (int32_t number_of_window = 0; number_of_window < windows; ++number_of_window) {
    int32_t power[1];
    int16_t *const logarithms = LOGARITHMS;
    for (int32_t sample = 0; sample < window; ++sample) {
        const int32_t place = number_of_window * hop + sample;
        windowed[sample] = SAMPLE;
    }
    {
WINDOW
    }
    {
SCALE_BITS
    }
    {
SCALED
    }
    {
RFFT
    }
    {
ENERGY
    }
    {
FILTER_BANK
    }
    {
SQUARE_ROOT
    }
    {
LOG
    }
COSINES
}
