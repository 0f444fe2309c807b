/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The C core's interface for Python. A `const char *` result is 0 on success, otherwise an error message. */
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

/* Create a board. `figures`: the board's numbers, by the names in api.c. `functions`: Unicorn's, in the order of
 * `struct unicorn`. */
API struct mesh *mesh_new(const struct device_figure *figures, uint32_t count, const struct memory *memories,
                          const struct unicorn *functions);
API void mesh_free(struct mesh *mesh);
API const char *mesh_missing_figure(void);
API void mesh_set_pe_dead(struct mesh *mesh, uint32_t pe);
API void mesh_set_link_dead(struct mesh *mesh, uint32_t pe, uint32_t other);
API void mesh_set_root(struct mesh *mesh, uint32_t pe);

/* Set the core of a PE. Call for every PE, before PEs are powered up. `model`: Unicorn's CPU number. `riscv`: 1 for a
 * RISC-V core. `refill_cycles`: extra cycles of a taken branch. `decode`: returns the costs of a block. */
API void mesh_set_core(struct mesh *mesh, uint32_t pe, uint32_t model, int riscv, uint32_t refill_cycles,
                       decode_function *decode);

/* Give a PE a smaller first memory than the others. Call before PEs are powered up. */
API void mesh_set_memory(struct mesh *mesh, uint32_t pe, uint32_t bytes);

/* Add a rule of a stock board for a register. Call before PEs are powered up. */
API int mesh_add_rule(struct mesh *mesh, uint32_t kind, uint32_t address, uint32_t value);

/* Add an accelerator to every PE powered up later. mesh_set_lacking() exempts a PE from the accelerator added last. */
API const char *mesh_add_accelerator(struct mesh *mesh, uint64_t base, const struct device_model *model,
                                     const struct device_figure *figures, uint32_t count);
API void mesh_set_places(struct mesh *mesh, uint32_t register_bytes, uint32_t interrupt, uint64_t scratchpad_base,
                        uint32_t scratchpad_bytes);
API void mesh_set_beside(struct mesh *mesh, const struct device_model *model);
API uint64_t mesh_compared(const struct mesh *mesh);

/* Let a model move the bytes of the network, beside the emulator's own network. mesh_messages(): messages that have
 * arrived alike in both. */
API const char *mesh_set_network(struct mesh *mesh, const struct network_model *model,
                                 const struct device_figure *figures, uint32_t count);
API uint64_t mesh_messages(const struct mesh *mesh);
API void mesh_set_lacking(struct mesh *mesh, uint32_t pe);

/* The state of a PE's accelerator, in the order of mesh_add_accelerator(). 0 where the PE has none. */
API void *mesh_device(const struct mesh *mesh, uint32_t pe, uint32_t number);

/* Add a program. 0 is unknown. `stack_bottom`: the stack's lowest address. `code`: must not be written while the
 * program runs. `arena`: activations, which a strict board lets any program read before they are written. */
API struct image *mesh_add_image(struct mesh *mesh, uint32_t stack_bottom, struct code_range code,
                             struct code_range arena);
API const char *mesh_power_up(struct mesh *mesh, uint32_t pe, struct image *image);

/* Start a powered-up PE from its vector table. */
API void mesh_reset(struct mesh *mesh, uint32_t pe);

/* Add a flash with contents `memory`, from which the root PE starts. Call before the root PE is powered up. `cause`:
 * manual, section 7.1. */
API const char *mesh_add_flash(struct mesh *mesh, const struct device_figure *figures, uint32_t count, uint8_t *memory,
                               uint32_t cause);
API void mesh_load_flash(struct mesh *mesh);

/* Cut the power during a flash operation; 1 is the next. `chance`: seed of the bits left behind. */
API void mesh_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance);

API int mesh_run(struct mesh *mesh, uint64_t until, int stop_at_output, double seconds);
API uint64_t mesh_now(const struct mesh *mesh);
API void mesh_send(struct mesh *mesh, const uint8_t *data, size_t count);
API size_t mesh_take(struct mesh *mesh, uint8_t *data, size_t room);

/* Access the memory of a PE or of a chip's DRAM. Returns 0 if no memory lies there. */
API int mesh_read(struct mesh *mesh, uint32_t place, uint32_t address, uint8_t *data, size_t count);
API int mesh_write(struct mesh *mesh, uint32_t place, uint32_t address, const uint8_t *data, size_t count);

/* Turn tracing on or off. Record when a PE reaches an instruction of `addresses` (ascending). Take the records. */
API void mesh_trace(struct mesh *mesh, int on);
API void mesh_trace_mark(struct mesh *mesh, uint32_t pe, const uint32_t *addresses, size_t count);
API size_t mesh_trace_take(struct mesh *mesh, struct trace_record *records, size_t room);

/* Run layers alone: repeat the code between the instructions `begin` and `end` for each case of a layer, with other
 * inputs each time. The first pass runs the first layer, the second pass the second, and so on. `places`: for each
 * layer, the inputs, then the outputs. `given`: the input bytes, case by case. mesh_alone_take() returns the output
 * bytes. */
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

/* Make a board strict: reads of unwritten memory are faults, and so are all stores into code, even where code shares a
 * page with variables. `races`: 1 to look for races. Slows the emulator down. Call before PEs are powered up. */
API void mesh_be_strict(struct mesh *mesh, int races);

/* Check the program's functions at the addresses `entries`, for all PEs with this program: it is a fault to return
 * without restoring registers as the procedure call standard requires. Slows the emulator down. */
API void mesh_watch_calls(struct mesh *mesh, uint32_t pe, struct image *image, const uint32_t *entries, uint32_t count);
/* Add words of a PE that other PEs may read and write without order, like registers, each word by itself. */
API void mesh_add_polled(struct mesh *mesh, uint32_t pe, struct code_range words);

/* Debug a PE, which stops before the first instruction, at breakpoints and after steps. Call before PEs are powered
 * up. */
API void mesh_debug(struct mesh *mesh, uint32_t pe);
API void mesh_debug_break(struct mesh *mesh, uint32_t address, int on);
API void mesh_debug_resume(struct mesh *mesh, int step);

/* r0-r12, sp, lr, pc, xpsr; then fpscr and s0-s31. */
enum { REGISTERS = 17 + 33 };
API void mesh_registers(const struct mesh *mesh, uint32_t pe, uint32_t *values);
API void mesh_set_register(struct mesh *mesh, uint32_t pe, uint32_t number, uint32_t value);

/* State of a PE that makes no progress. */
struct wait {
    uint32_t state; /* enum pe_state */
    uint32_t pc;
    uint32_t address, value; /* flag or accelerator register read last, and its value */
};
API void mesh_wait(const struct mesh *mesh, uint32_t pe, struct wait *wait);

API size_t mesh_notes(const struct mesh *mesh, struct note *notes, size_t room);

/* Set the plan of faults. Call before the board runs. */
API void mesh_inject(struct mesh *mesh, const struct injection *injections, uint32_t count, uint32_t seed);

/* Disturb the timing from this cycle on, by a seed (disturb.c); 0: timing of the hardware manual. */
API void mesh_disturb(struct mesh *mesh, uint32_t seed);

/* Copy the first PE's SRAM to the other PEs, which share pages until they write. Call before these PEs run. */
API void mesh_share(struct mesh *mesh, const uint32_t *pes, uint32_t count);

/* Set the number of host cores that run PEs. Results do not depend on the number. Call before the board runs. */
API void mesh_set_workers(struct mesh *mesh, uint32_t workers);

API void mesh_count(const struct mesh *mesh, uint32_t pe, struct counters *counters);
API void mesh_fault(const struct mesh *mesh, struct fault *fault);

#endif
