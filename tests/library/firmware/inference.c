/* The customer's use of the network: all cases, twice, so that one run's leftovers would show in the next. */
#include "inference.h"

#include <string.h>

#include "cases.h"
#include "digits_int8.h"

int8_t answers[CASES][DIGITS_INT8_OUTPUT_PROBABILITIES_ELEMENTS];
volatile int32_t finished = -1;

void inference(void)
{
    digits_int8_init();
    for (int i = 0; i < 2 * CASES; i++) {
        memcpy(digits_int8_input_image(), given[i % CASES], DIGITS_INT8_INPUT_IMAGE_ELEMENTS);
        const int32_t error = digits_int8_run();
        if (error != 0) {
            finished = error;
            return;
        }
        memcpy(answers[i % CASES], digits_int8_output_probabilities(), DIGITS_INT8_OUTPUT_PROBABILITIES_ELEMENTS);
    }
    finished = 0;
}
