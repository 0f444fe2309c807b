/* The vector unit's instructions interpreted by the core, an element at a time. */
#include "vector16.h"

enum { HALT, LOAD, STORE, ADD, SUB, MUL, MIN, MAX, ADDI, MINI, MAXI, SHL, MULH, RSHR };
enum { ERROR_INSTRUCTION = 3 };

struct element {
    int32_t v[8];
    struct vector16_pointers pointers;
};

static int32_t two_operands(uint32_t opcode, int32_t a, int32_t b)
{
    switch (opcode) {
    case ADD:
    case ADDI:
        return (int32_t)((uint32_t)a + (uint32_t)b);
    case SUB:
        return (int32_t)((uint32_t)a - (uint32_t)b);
    case MUL:
        return (int32_t)((uint32_t)a * (uint32_t)b);
    case MIN:
    case MINI:
        return a < b ? a : b;
    case MAX:
    case MAXI:
        return a > b ? a : b;
    case SHL:
        return (int32_t)((uint32_t)a << b);
    case MULH:
        return (int32_t)(((int64_t)a * b + ((int64_t)1 << 30)) >> 31);
    default: /* RSHR */
        return (a + (int32_t)((1U << b) >> 1) - (b > 0 && a < 0)) >> b;
    }
}

static int32_t run_element(struct element *element, const int32_t *program)
{
    for (;;) {
        const uint32_t word = (uint32_t)*program++;
        const uint32_t opcode = word & 0xFF, d = word >> 8 & 7, a = word >> 16 & 7, b = word >> 24 & 7;
        switch (opcode) {
        case HALT:
            return 0;
        case LOAD:
            element->v[d] = *element->pointers.at[a]++;
            break;
        case STORE:
            *element->pointers.at[a]++ = (int8_t)element->v[d];
            break;
        default:
            if (opcode > RSHR) {
                return ERROR_INSTRUCTION;
            }
            element->v[d] = two_operands(opcode, element->v[a], opcode >= ADDI ? *program++ : element->v[b]);
        }
    }
}

static int32_t error;

int32_t vector16_start(void *first, void *second, void *output, const int32_t *program, int32_t words, const int32_t *shape)
{
    (void)words;
    for (int32_t row = 0; row < shape[ROWS]; row++) {
        for (int32_t run = 0; run < shape[RUNS]; run++) {
            struct element element = {.pointers = vector16_pointers(first, second, output, row, run, shape)};
            for (int32_t i = 0; i < shape[ELEMENTS]; i++) {
                error |= run_element(&element, program);
            }
        }
    }
    return 0;
}

int32_t vector16_wait(void)
{
    const int32_t result = error;
    error = 0;
    return result;
}
