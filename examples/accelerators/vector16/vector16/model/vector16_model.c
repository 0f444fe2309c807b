/* The vector unit for npukit's built-in emulator, accurate to the cycle: vector16.md. */
#include "device.h"

#include <string.h>

enum { START, STATUS, ERROR, ELEMENTS, POINTER, REGISTERS = POINTER + 4 }; /* a word each */
enum { PROGRAM = 0x400, LANES = 16, VECTORS = 8, PROGRAM_ROOM = 768 };
enum { HALT, LOAD, STORE, ADD, SUB, MUL, MIN, MAX, ADDI, MINI, MAXI, SHL, MULH, RSHR, OPCODES };
enum { ERROR_BUSY = 1, ERROR_SRAM, ERROR_INSTRUCTION };

struct unit {
    const struct device_place *place;
    uint32_t program_words, setup_cycles;
    uint32_t registers[REGISTERS];
    uint32_t running[REGISTERS]; /* the registers at the start; the pointers move on */
    uint32_t program[PROGRAM_ROOM];
    int32_t v[VECTORS][LANES];
    uint64_t cycles;
    bool busy;
};

struct instruction {
    uint32_t opcode, d, a, b;
    int32_t immediate;
};

static bool take(const struct device_place *place, const char *name, uint32_t most, uint32_t *value)
{
    for (uint32_t i = 0; i < place->figure_count; i++) {
        if (strcmp(place->figures[i].name, name) == 0) {
            *value = (uint32_t)place->figures[i].value;
            return *value <= most;
        }
    }
    return false;
}

static const char *start(void *state, const struct device_place *place)
{
    struct unit *unit = state;
    unit->place = place;
    if (!take(place, "program_words", PROGRAM_ROOM, &unit->program_words)) {
        return "vector16 needs program_words of at most 768";
    }
    return take(place, "setup_cycles", 10000, &unit->setup_cycles) ? 0 : "vector16 needs setup_cycles";
}

/* Fetch the instruction at word `at`, and move `at` past it. Return false if the instruction is invalid. */
static bool fetch(const struct unit *unit, uint32_t *at, struct instruction *instruction)
{
    if (*at >= unit->program_words) {
        return false;
    }
    const uint32_t word = unit->program[(*at)++];
    *instruction = (struct instruction){word & 0xFF, word >> 8 & 0xFF, word >> 16 & 0xFF, word >> 24, 0};
    if (instruction->opcode >= ADDI && instruction->opcode < OPCODES) {
        if (*at >= unit->program_words) {
            return false;
        }
        instruction->immediate = (int32_t)unit->program[(*at)++];
    }
    const bool shift = instruction->opcode == SHL || instruction->opcode == RSHR;
    const bool shifts = !shift || (instruction->immediate >= 0 && instruction->immediate < 32);
    return instruction->opcode < OPCODES && instruction->d < VECTORS && instruction->a < VECTORS && instruction->b < VECTORS &&
           shifts;
}

/* ---- before a run: check the program and its accesses ---- */

static uint32_t check(const struct unit *unit, uint64_t *instructions)
{
    uint64_t loads[4] = {0};
    struct instruction each;
    uint32_t at = 0;
    const uint64_t vectors = (unit->registers[ELEMENTS] + LANES - 1) / LANES;
    for (*instructions = 0; fetch(unit, &at, &each); ++*instructions) {
        if (each.opcode == HALT) {
            return 0;
        }
        if (each.opcode != LOAD && each.opcode != STORE) {
            continue;
        }
        if (each.a >= 4) {
            return ERROR_INSTRUCTION;
        }
        /* The unit does not access the lanes beyond the last element. */
        const uint64_t end = unit->registers[POINTER + each.a] +
                             (++loads[each.a] == 1 ? unit->registers[ELEMENTS] : loads[each.a] * vectors * LANES);
        if (end > unit->place->sram_bytes) {
            return ERROR_SRAM;
        }
    }
    return ERROR_INSTRUCTION;
}

/* ---- a run ---- */

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
        return (int32_t)(((int64_t)a * b * 2 + ((int64_t)1 << 31)) >> 32);
    default: /* RSHR: halves away from zero */
        return (int32_t)(((int64_t)a + (((int64_t)1 << b) >> 1) - (b > 0 && a < 0)) >> b);
    }
}

static void move(struct unit *unit, struct instruction instruction, uint32_t lanes)
{
    uint8_t *memory = unit->place->sram + unit->running[POINTER + instruction.a];
    for (uint32_t lane = 0; lane < lanes; lane++) {
        if (instruction.opcode == LOAD) {
            unit->v[instruction.d][lane] = (int8_t)memory[lane];
        } else {
            memory[lane] = (uint8_t)unit->v[instruction.d][lane];
        }
    }
    unit->running[POINTER + instruction.a] += LANES;
}

static void compute(struct unit *unit, struct instruction instruction)
{
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const int32_t b = instruction.opcode >= ADDI ? instruction.immediate : unit->v[instruction.b][lane];
        unit->v[instruction.d][lane] = two_operands(instruction.opcode, unit->v[instruction.a][lane], b);
    }
}

static void run_vector(struct unit *unit, uint32_t lanes)
{
    struct instruction each;
    for (uint32_t at = 0; fetch(unit, &at, &each) && each.opcode != HALT;) {
        if (each.opcode == LOAD || each.opcode == STORE) {
            move(unit, each, lanes);
        } else {
            compute(unit, each);
        }
    }
}

/* Read operands and write results only at the end, to expose software that does not wait. */
static void finished(void *state)
{
    struct unit *unit = state;
    for (uint32_t left = unit->running[ELEMENTS]; left > 0;) {
        const uint32_t lanes = left < LANES ? left : LANES;
        run_vector(unit, lanes);
        left -= lanes;
    }
    unit->busy = false;
    unit->place->services->count_busy(unit->place->host, unit->cycles);
    unit->place->services->set_event(unit->place->host);
}

static void begin(struct unit *unit)
{
    uint64_t instructions = 0;
    const uint32_t error = unit->busy ? ERROR_BUSY : check(unit, &instructions);
    if (error != 0) {
        unit->registers[ERROR] = unit->registers[ERROR] ? unit->registers[ERROR] : error;
        unit->place->services->report_error(unit->place->host, error, unit->registers[POINTER]);
        return;
    }
    memcpy(unit->running, unit->registers, sizeof unit->running);
    unit->cycles = unit->setup_cycles + (uint64_t)(unit->registers[ELEMENTS] + LANES - 1) / LANES * instructions;
    unit->busy = true;
    unit->place->services->finish_after(unit->place->host, unit->cycles);
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const struct unit *unit = state;
    if (offset / 4 == STATUS) {
        return unit->busy ? 1 : 0;
    }
    return offset / 4 < REGISTERS ? unit->registers[offset / 4] : 0;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct unit *unit = state;
    if (offset >= PROGRAM && (offset - PROGRAM) / 4 < unit->program_words) {
        unit->program[(offset - PROGRAM) / 4] = value;
    } else if (offset / 4 == START) {
        begin(unit);
    } else if (offset / 4 == ERROR) {
        unit->registers[ERROR] = 0;
    } else if (offset / 4 >= ELEMENTS && offset / 4 < REGISTERS) {
        unit->registers[offset / 4] = value;
    }
}

DEVICE_EXPORT const struct device_model vector16_device = {
    DEVICE_ABI, sizeof(struct unit), start, read_register, write_register, finished,
};
