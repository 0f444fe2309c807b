/* SPDX-License-Identifier: GPL-2.0-only
 *
 * The emulated board: PEs, and timed events between PEs. Each PE has a Unicorn core and a cycle count of its own.
 *
 * Timing is exact. A PE may run up to a quantum ahead of the others (schedule.c). Before an access that concerns other
 * PEs (any register outside the core, except the timer's), the PE waits until no other PE is behind.
 *
 * There is an exception: Unicorn cannot stop before an access under an IT instruction. The PE waits before the IT
 * instruction instead, and may miss events of the few cycles between. The first time the PE does not wait at all,
 * because the emulator does not know yet that the access goes to a register. */
#ifndef MESH_H
#define MESH_H

#include "device.h"
#include "events.h"
#include "harm.h"
#include "network_device.h"
#include "pe.h"
#include "trace.h"

/* bus.c */
const char *bus_attach(struct pe *pe, uint64_t base, uint32_t size, struct bus_port port);
const char *bus_attach_others(struct pe *pe);
bool bus_meet_the_others(struct pe *pe);
const char *bus_attach_scratchpad(struct device_host *host, uint64_t base);

struct accelerator;

/* devices.c: accelerators. */
const char *devices_attach(struct pe *pe);
const char *devices_create(struct pe *pe, struct device_host *host, const struct device_model *model,
                           const struct accelerator *accelerator, uint8_t *sram);
void devices_end(struct pe *pe);
bool devices_interrupt(const struct pe *pe);

/* clock.c: devices called in each cycle, and their accesses of the SRAM port. */
void clock_start(struct device_host *host);
void clock_settle(struct pe *pe);
bool clock_port_free(const struct device_host *host);
bool clock_port_read(struct device_host *host, uint32_t address, uint32_t bytes, uint8_t *data);
bool clock_port_write(struct device_host *host, uint32_t address, uint32_t bytes, uint32_t strobe, const uint8_t *data);

/* beside.c: a device with a C model beside, whose work must be the same. A device without a model is not compared. */
const char *beside_attach(struct pe *pe, struct device_host *host, const struct accelerator *accelerator);
void beside_free(struct device_host *host);
bool beside_works(const struct device_host *host);
struct device_host *beside_device(struct device_host *host);
void beside_begin(struct device_host *host);
void beside_write(struct device_host *host, uint32_t offset, uint32_t value);
void beside_read(struct device_host *host, uint32_t offset, uint32_t value);
bool beside_did(struct device_host *host, bool event, uint64_t cycles);
void beside_fetched(struct device_host *host, uint32_t address);
void beside_wrote(struct device_host *host, uint32_t at);
void beside_delay(struct device_host *host, uint64_t cycles);
void beside_settle(struct device_host *host);

/* port.c: the SRAM port, shared by DMA and accelerators. */
void port_use(struct pe *pe, uint64_t from, uint64_t cycles);
uint64_t port_used(const struct pe *pe, uint64_t from, uint64_t to);
void port_forget(struct pe *pe);

/* network_beside.c: a network in RTL, with the emulator's network beside. Without such a network nothing happens. */
const char *network_create(struct mesh *mesh, const struct network_model *model, const struct device_figure *figures,
                           uint32_t count);
void network_end(struct mesh *mesh);
void network_shows(struct mesh *mesh, uint32_t pe, enum network_event event, uint32_t number);
void network_takes_port(const struct pe *pe, uint64_t cycles);
void network_write(const struct pe *pe, uint32_t offset, uint32_t value);
void network_read(const struct pe *pe, uint32_t offset, uint32_t value);

/* timer.c */
const char *timer_attach(struct pe *pe);
bool timer_read(struct pe *pe, uint32_t address, uint32_t *value);
void timer_write(struct pe *pe, uint32_t address);

/* stock.c: further registers of stock boards. */
enum { MOST_RULES = 48, MOST_PAGES = 32 };
const char *stock_attach(struct pe *pe);
void stock_free(struct mesh *mesh);
void stock_restart(struct pe *pe);

/* uart.c: on the root PE. */
struct uart {
    struct pe *pe;
    uint64_t byte_cycles;
    uint8_t received[256];
    uint32_t received_first, received_count;
    bool lost;
    uint8_t sending[16];
    uint32_t sending_first, sending_count;
    bool line_busy;
    uint8_t on_line;
    uint8_t *to_board; /* bytes from the host, not received yet */
    size_t to_board_first, to_board_count, to_board_room;
    bool arriving;
    bool armed, ended; /* the UART's DMA is armed to receive a byte; has stored the byte */
    uint32_t receive_to, send_from;
    uint8_t *to_host;
    size_t to_host_count, to_host_room;
};

const char *uart_attach(struct pe *pe);
uint32_t uart_read(struct uart *uart, uint32_t offset);
void uart_write(struct uart *uart, uint32_t offset, uint32_t value);
bool uart_is_at(const struct uart *uart, uint32_t offset);
void uart_receive(struct mesh *mesh, const uint8_t *data, size_t count);
size_t uart_take(struct mesh *mesh, uint8_t *data, size_t room);

/* memory.c */
bool memory_create(struct mesh *mesh);
void memory_free(struct mesh *mesh);

/* dma.c and noc.c */
const char *dma_attach(struct pe *pe);
void dma_reset(struct pe *pe);
void dma_stop(struct pe *pe);
void dma_stall(struct pe *pe, uint64_t until);

/* flash.c: the root PE's flash, on boards with flash boot. */
struct flash;

struct flash_figures {
    uint64_t base, window;
    uint32_t bytes, page_bytes, loader_bytes, once_bytes;
    uint32_t erase_cycles, program_cycles, copy_cycles_per_word;
};

void flash_create(struct mesh *mesh, struct flash_figures figures, uint8_t *memory, uint32_t cause);
const char *flash_attach(struct pe *pe);
const char *boot_attach(struct pe *pe); /* on boards without flash boot */
void flash_load(struct mesh *mesh);
void flash_cut_power(struct mesh *mesh, uint64_t operation, uint32_t chance);
uint64_t flash_watchdog(const struct mesh *mesh); /* cycle at which the watchdog restarts the board, or NEVER */
void flash_watchdog_expires(struct mesh *mesh);
void flash_free(struct mesh *mesh);

/* ---- the board (schedule.c, api.c) ---- */

/* A page of registers: a read returns the last value written. */
struct page {
    uint32_t address;
    uint32_t words[1024];
    struct view views[1024]; /* the writer's view at each word's last store: races.h */
};

enum rule_kind {
    RULE_PAGE,    /* a page of registers lies at `address` */
    RULE_SET,     /* the bits of `value` are always set */
    RULE_SAME,    /* reads as the register at `value` */
    RULE_PE,      /* reads as the PE's number */
    RULE_RESTART, /* setting the bits of `value` restarts the board */
    RULE_START,   /* writing the start address of a PE's program starts the PE */
};

/* A register's behaviour, from the board file. */
struct rule {
    uint32_t kind, address, value;
};

#define NOWHERE_AT 0xFFFFFFFFU

struct memory {
    uint32_t base, bytes;
    uint32_t wait_cycles; /* extra cycles of an access to an uncached line of `line_bytes`: waits.c */
    uint32_t next_cycles; /* extra cycles of code in the line after the last line read */
    uint32_t line_bytes, lines, ways;
    uint32_t data_lines; /* cache lines for loads and stores; 0: the code's cache serves both */
};

struct figures {
    uint64_t clock_hz, baud;
    uint32_t sram_bytes;
    uint32_t memory_count;
    struct memory memories[MOST_MEMORIES]; /* of PE 0, in the order of `sram`; the first holds the code */
    uint32_t code_bytes; /* size of the first memory */
    uint32_t start; /* offset of the program in the first memory, behind the chip's own boot data */
    uint32_t shared; /* 1: PEs see each other's memories, at consecutive addresses */
    uint32_t stock; /* 1: the board file lists the board's registers (stock.c) */
    uint32_t uart_receive, uart_send, uart_readable_at, uart_readable, uart_writable_at, uart_writable;
    uint32_t uart_says_empty, uart_says_full; /* 1: the bits mean empty and full, not readable and writable */
    uint32_t uart_bytes; /* 1: registers are one byte wide */
    uint32_t uart_receive_to, uart_send_from; /* registers with the address of a byte in memory; NOWHERE_AT: no DMA */
    uint32_t timer_count, timer_high, timer_capture, timer_down; /* NOWHERE_AT: register absent */
    uint64_t timer_hz;
    uint32_t receive_bytes; /* size of the UART's receive buffer */
    uint32_t chip_columns, chip_rows, columns, rows;
    uint32_t hexagonal_torus; /* of chips: the last in a row or column neighbours the first */
    uint64_t timer_base, noc_base, uart_base, window_base;
    uint64_t events_base; /* 0: none */
    uint64_t boot_base; /* 0: no boot controller */
    uint64_t boot_window, boot_bytes; /* address and size of the loader area */
    uint32_t port_bytes_per_cycle, setup_cycles, hop_cycles;
    uint32_t packet_flits, buffer_packets, border_packets;
    uint32_t chip_hop_cycles, chip_links_per_border, chip_link_bytes_per_100_cycles;
    uint64_t dram_bytes;
    uint32_t dram_bytes_per_cycle, dram_latency_cycles, dram_burst_bytes, dram_banks, dram_row_bytes, dram_row_cycles;
    uint32_t dram_requests, dram_refresh_interval, dram_refresh_cycles;
    uint32_t flags;
    uint32_t seed; /* for the random SRAM contents at power-on */
};

enum { NO_INTERRUPT = 255 };

struct accelerator {
    uint64_t base;
    const struct device_model *model;
    const struct device_figure *figures;
    uint32_t figure_count;
    const struct device_model *beside; /* model that must do the same; 0: none */
    uint32_t register_bytes, interrupt; /* NVIC number, or NO_INTERRUPT */
    uint64_t scratchpad_base;
    uint32_t scratchpad_bytes;
};

struct noc; /* noc.c */

struct unicorn {
    uc_err (*open)(uc_arch, uc_mode, uc_engine **);
    uc_err (*close)(uc_engine *);
    uc_err (*ctl)(uc_engine *, uc_control_type, ...);
    uc_err (*mem_map)(uc_engine *, uint64_t, uint64_t, uint32_t);
    uc_err (*mem_map_ptr)(uc_engine *, uint64_t, uint64_t, uint32_t, void *);
    uc_err (*mem_protect)(uc_engine *, uint64_t, uint64_t, uint32_t);
    uc_err (*mmio_map)(uc_engine *, uint64_t, uint64_t, uc_cb_mmio_read_t, void *, uc_cb_mmio_write_t, void *);
    uc_err (*hook_add)(uc_engine *, uc_hook *, int, void *, void *, uint64_t, uint64_t, ...);
    uc_err (*emu_start)(uc_engine *, uint64_t, uint64_t, uint64_t, size_t);
    uc_err (*emu_stop)(uc_engine *);
    uc_err (*reg_read)(uc_engine *, int, void *);
    uc_err (*reg_write)(uc_engine *, int, const void *);
};

/* The debugger's state, for a single PE. */
struct debug {
    bool on;
    uint32_t pe;
    uint8_t *breakpoints; /* one byte per halfword of the code memory */
    bool step, stopped;
    uint64_t resumed_at; /* instruction count at resumption; no stop at this instruction */
};

struct mesh {
    struct figures figures;
    const struct unicorn *unicorn;
    struct accelerator accelerators[DEVICES_PER_PE];
    uint32_t accelerator_count;
    uint64_t compared; /* works of devices equal to the works of the models beside them */
    struct image *images; /* the image added last */
    struct pe *pes;
    uint32_t pe_count;
    uint32_t root;
    uint8_t *sram; /* SRAM of all PEs */
    struct events events;
    struct pe **queue; /* heap of the running PEs, furthest behind first */
    size_t queue_count;
    uint64_t now, before; /* before: `now` before the present event */
    struct uart uart;
    struct rule rules[MOST_RULES];
    uint32_t rule_count;
    struct page *pages[MOST_PAGES];
    uint32_t page_count;
    bool output; /* the UART has sent all its bytes */
    struct pe *faulted;
    uint32_t fault_other;
    char fault_what[128];
    uint64_t fault_since;
    struct noc *noc;
    struct network_host *network; /* 0: no network in RTL */
    uint32_t alone_pes; /* PEs with layers still to run alone: bytes of messages change on their way */
    uint64_t messages; /* landings equal in RTL and in the emulator's network */
    struct flash *flash;
    struct trace *trace;
    uint32_t end;
    struct debug debug;
    struct note notes[NOTES];
    uint64_t note_count;
    struct injection *injections;
    size_t injection_count;
    uint32_t chance;
    struct deeds *deeds; /* races.c */
    struct crew *crew; /* side_by_side.c */
};

/* Ends of a run caused by the board itself. */
enum end { END_NONE, END_RESTART, END_POWER, END_WATCHDOG };

/* The offset of `address` in the PE's `sram`, or `sram_bytes` unless all `bytes` lie in one of the PE's memories. */
static inline uint32_t place_of_bytes(const struct pe *pe, uint32_t address, uint64_t bytes)
{
    const struct figures *figures = &pe->mesh->figures;
    uint32_t before = 0;
    for (uint32_t i = 0; i < figures->memory_count; i++) {
        const uint32_t inside = address - pe->memory_bases[i];
        if (inside < pe->memory_bytes[i] && inside + bytes <= pe->memory_bytes[i]) {
            return before + inside;
        }
        before += figures->memories[i].bytes;
    }
    return figures->sram_bytes;
}

static inline uint32_t place_of(const struct pe *pe, uint32_t address)
{
    return place_of_bytes(pe, address, 1);
}

static inline bool is_memory(const struct pe *pe, uint32_t address, uint64_t bytes)
{
    return place_of_bytes(pe, address, bytes) < pe->mesh->figures.sram_bytes;
}

enum outcome {
    RAN_TO_CYCLE,
    RAN_TO_OUTPUT,
    RAN_TO_IDLE,
    RAN_TO_FAULT,
    RAN_OUT_OF_TIME,
    RAN_TO_RESTART,
    RAN_TO_POWER_CUT,
    RAN_TO_STOP,
    RAN_TO_WATCHDOG,
};

int schedule_run(struct mesh *mesh, uint64_t until, bool stop_at_output, double seconds);
void schedule_add(struct mesh *mesh, struct pe *pe);
bool schedule_settle(struct mesh *mesh, uint64_t time);
uint64_t schedule_slice_end(const struct pe *pe, uint64_t until);
size_t schedule_take_behind(struct mesh *mesh, uint64_t until, struct pe **batch);
void schedule_add_running(struct mesh *mesh, struct pe *pe);

/* side_by_side.c */
bool side_by_side_run(struct mesh *mesh, uint64_t behind, uint64_t until);
void side_by_side_end(struct mesh *mesh);

struct image *mesh_add_image(struct mesh *mesh, uint32_t stack_bottom, struct code_range code,
                             struct code_range arena);

void *grow(void *array, size_t *room, size_t needed, size_t item);

#endif
