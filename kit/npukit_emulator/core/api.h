/* SPDX-License-Identifier: GPL-2.0-only
 *
 * What Python calls. Functions that can fail return 0 or a complaint. */
#ifndef API_H
#define API_H

#include "mesh.h"

#ifdef _WIN32
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif

struct counters {
    uint64_t instructions, cycles, asleep, accelerators_busy, dma_bytes;
    uint32_t device_errors, last_device_error, last_device_error_address, running;
};

/* Figures by name: see api.c. `functions` are Unicorn's, in the order of `struct unicorn`. */
API struct mesh *mesh_new(const struct device_figure *figures, uint32_t count, const struct memory *memories,
                          const struct unicorn *functions);
API void mesh_free(struct mesh *mesh);
API const char *mesh_missing_figure(void);
API void mesh_set_pe_dead(struct mesh *mesh, uint32_t pe);
API void mesh_set_link_dead(struct mesh *mesh, uint32_t pe, uint32_t other);
API void mesh_set_root(struct mesh *mesh, uint32_t pe);

/* A PE's core: Unicorn's number of it, whether it is one of RISC-V, what a taken branch costs besides, and what tells of
 * its instructions. Of each PE, before it is powered up. */
API void mesh_set_core(struct mesh *mesh, uint32_t pe, uint32_t model, int riscv, uint32_t refill_cycles,
                       decode_function *decode);

/* A PE has less of its first memory than others. Before PEs are powered up. */
API void mesh_set_memory(struct mesh *mesh, uint32_t pe, uint32_t bytes);

/* What a stock board's file says of a register. Before PEs are powered up. */
API int mesh_add_rule(struct mesh *mesh, uint32_t kind, uint32_t address, uint32_t value);

/* Every PE that is powered up later gets one, but for those that are told to lack the one last added. */
API const char *mesh_add_accelerator(struct mesh *mesh, uint64_t base, const struct device_model *model,
                                     const struct device_figure *figures, uint32_t count);
API void mesh_set_lacking(struct mesh *mesh, uint32_t pe);

/* A program. What is 0 is not known: the lowest address of its stack; the addresses of its code, which must not be written
 * while it runs; those of its activations, which a strict board lets anybody read. */
API struct image *mesh_add_image(struct mesh *mesh, uint32_t stack_bottom, struct code_range code,
                             struct code_range arena);
API const char *mesh_power_up(struct mesh *mesh, uint32_t pe, struct image *image);

/* Let a PE that has been powered up run from its vector table. */
API void mesh_reset(struct mesh *mesh, uint32_t pe);

/* A board that starts by itself, from `memory`: before its root PE is powered up. `cause`: manual, section 7.1. */
API const char *mesh_add_flash(struct mesh *mesh, const struct device_figure *figures, uint32_t count, uint8_t *memory,
                               uint32_t cause);
API void mesh_load_flash(struct mesh *mesh);

/* Cut the power in the midst of a flash operation, 1 being the next; what it leaves is left to `chance`. */
API void mesh_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance);

API int mesh_run(struct mesh *mesh, uint64_t until, int stop_at_output, double seconds);
API uint64_t mesh_now(const struct mesh *mesh);
API void mesh_send(struct mesh *mesh, const uint8_t *data, size_t count);
API size_t mesh_take(struct mesh *mesh, uint8_t *data, size_t room);

/* Memory of a PE, or of a chip's DRAM. False if there is no such memory. */
API int mesh_read(struct mesh *mesh, uint32_t place, uint32_t address, uint8_t *data, size_t count);
API int mesh_write(struct mesh *mesh, uint32_t place, uint32_t address, const uint8_t *data, size_t count);

/* Whether what happens is written down; instructions, ascending, to write down when a PE comes to one of them; what was
 * written down. */
API void mesh_trace(struct mesh *mesh, int on);
API void mesh_trace_mark(struct mesh *mesh, uint32_t pe, const uint32_t *addresses, size_t count);
API size_t mesh_trace_take(struct mesh *mesh, struct trace_record *records, size_t room);

/* What a PE does between two instructions, from now on the first time, the second, and so on: so many cases of each such
 * layer, whose inputs and outputs lie in so many places, which follow each other, as do the bytes given for the inputs
 * case by case. What it leaves in the outputs is there to be taken. */
struct alone_span {
    uint32_t begin, end;
};
struct alone_layer {
    uint32_t cases, inputs, outputs;
};
struct alone_place {
    uint32_t address, bytes;
};
API void mesh_alone(struct mesh *mesh, uint32_t pe, struct alone_span span, const struct alone_layer *layers,
                    uint32_t count, const struct alone_place *places, const uint8_t *given);
API size_t mesh_alone_take(struct mesh *mesh, uint32_t pe, uint8_t *data, size_t room);

/* Before PEs are powered up: reading memory that was never written is a fault, and so is any store into code, however
 * little of it shares a page with variables. Costs speed. */
API void mesh_be_strict(struct mesh *mesh, int races);

/* Functions of a program, which this PE and others run, by their addresses: registers that they do not leave as the procedure call standard says are
 * faults. Costs speed. */
API void mesh_watch_calls(struct mesh *mesh, uint32_t pe, struct image *image, const uint32_t *entries, uint32_t count);
/* Words of a PE that others may read and write without being ordered, each for itself, like registers. */
API void mesh_add_polled(struct mesh *mesh, uint32_t pe, struct code_range words);

/* Before PEs are powered up: one of them is to stop before its first instruction, at breakpoints, and after steps. */
API void mesh_debug(struct mesh *mesh, uint32_t pe);
API void mesh_debug_break(struct mesh *mesh, uint32_t address, int on);
API void mesh_debug_resume(struct mesh *mesh, int step);

/* r0-r12, sp, lr, pc, xpsr; then fpscr and s0-s31. */
enum { REGISTERS = 17 + 33 };
API void mesh_registers(const struct mesh *mesh, uint32_t pe, uint32_t *values);
API void mesh_set_register(struct mesh *mesh, uint32_t pe, uint32_t number, uint32_t value);

/* What a PE that does not get on has last looked at. */
struct wait {
    uint32_t state; /* enum pe_state */
    uint32_t pc;
    uint32_t address, value; /* of the flag or the accelerator's register that it read last */
};
API void mesh_wait(const struct mesh *mesh, uint32_t pe, struct wait *wait);

API size_t mesh_notes(const struct mesh *mesh, struct note *notes, size_t room);

/* Before the board runs. */
API void mesh_inject(struct mesh *mesh, const struct injection *injections, uint32_t count, uint32_t seed);

/* From now on things happen as a schedule by a seed has it; 0: as the hardware manual has it. */
API void mesh_disturb(struct mesh *mesh, uint32_t seed);

/* Before they run: PEs begin with what the first one's SRAM holds, and share its pages while they do not write. */
API void mesh_share(struct mesh *mesh, const uint32_t *pes, uint32_t count);

/* Before the board runs: on how many of the host's cores. What comes out does not depend on it. */
API void mesh_set_workers(struct mesh *mesh, uint32_t workers);

API void mesh_count(const struct mesh *mesh, uint32_t pe, struct counters *counters);
API void mesh_fault(const struct mesh *mesh, struct fault *fault);

#endif
