// SPDX-License-Identifier: Apache-2.0
// Runs chains of commands on the array. Cases come from stdin, results go to stdout (little endian):
//   case:   u32 SRAM bytes, the SRAM, u32 doorbell address, u32 freeze seed (0: never frozen)
//   result: u32 ERROR, u32 ERROR_COMMAND, u32 BUSY_CYCLES, u32 frozen cycles while busy,
//           u32 COMPLETED, u32 violations in this case, the SRAM
// It checks the port's rules. It checks that STATUS reads busy for BUSY_CYCLES - 1 cycles behind the
// doorbell's cycle, and that the event is set in the cycle after these. The exit code is 1 on a
// violation. With an argument it tests the registers instead.
#include <cstdint>
#include <cstdio>
#include <vector>
#include <unistd.h>
#include "Vmac_array.h"
#include "verilated.h"

static Vmac_array *array;
static std::vector<uint8_t> sram;
static uint32_t noise = 1, violations = 0;
static bool events = false;

// A failed assertion counts as a violation, and the run goes on.
void vl_stop(const char *file, int line, const char *) {
  fprintf(stderr, "assertion at %s:%d\n", file, line);
  violations++;
}

static uint32_t random_word(uint32_t &state) {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

// One cycle. Reads of registers are combinational, so rdata is taken before the edge.
static uint32_t cycle() {
  array->clock = 0;
  array->eval();
  uint32_t rdata = array->register_rdata;
  events |= array->event_set;
  bool request = array->port_request, write = array->port_write;
  uint32_t address = array->port_address, bytes = array->port_bytes;
  uint8_t data[32];
  for (int i = 0; i < 8; i++) ((uint32_t *)data)[i] = random_word(noise);
  if (request) {
    if (!array->enable || bytes == 0 || bytes > 32 || (bytes > 16 && (bytes != 32 || address % 4))) {
      fprintf(stderr, "port: %u bytes at %x, enable %d\n", bytes, address, array->enable);
      violations++;
    }
    for (uint32_t i = 0; i < bytes; i++) {
      uint8_t &place = sram[(address + i) % sram.size()];
      if (!write) data[i] = place;
      else if (array->port_strobe >> i & 1) place = ((uint8_t *)&array->port_wdata[0])[i];
    }
  }
  array->clock = 1;
  array->eval();
  for (int i = 0; i < 8; i++) array->port_rdata[i] = ((uint32_t *)data)[i];
  return rdata;
}

static uint32_t read_register(uint32_t offset) {
  array->register_read = 1;
  array->register_offset = offset;
  uint32_t value = cycle();
  array->register_read = 0;
  return value;
}

static void write_register(uint32_t offset, uint32_t value) {
  array->register_write = 1;
  array->register_offset = offset;
  array->register_wdata = value;
  cycle();
  array->register_write = 0;
}

static void reset() {
  array->enable = array->reset = 1;
  array->register_read = array->register_write = 0;
  for (int i = 0; i < 3; i++) cycle();
  array->reset = 0;
  cycle();
  events = false;
}

static void expect(const char *what, uint32_t is, uint32_t should) {
  if (is == should) return;
  fprintf(stderr, "%s: %x, not %x\n", what, is, should);
  violations++;
}

// What no chain of commands shows: errors while busy, clearing, the first error, unused words.
static int test_registers() {
  sram.assign(131072, 0);
  uint32_t pool[24] = {};   // a maximum of 20 x 20 values: 28 + 401 + 12 cycles
  pool[1] = 4; pool[2] = 0x1000; pool[5] = 0x4000; pool[6] = 20 << 16 | 20; pool[7] = 20;
  pool[8] = 1; pool[9] = 1 << 16 | 1; pool[10] = pool[11] = 1; pool[12] = 1 << 16 | 1;
  pool[13] = 0x01011414; pool[14] = 0x0101; pool[15] = 0x7F800000;
  for (int i = 0; i < 96; i++) sram[i] = ((uint8_t *)pool)[i];
  reset();
  expect("STATUS after reset", read_register(4), 0);
  expect("DOORBELL reads", read_register(0), 0);
  expect("a word without register", read_register(0x18), 0);
  write_register(0, 0);
  expect("STATUS of a running array", read_register(4), 1);
  expect("BUSY_CYCLES of the running command", read_register(0xC), 2);
  write_register(0, 0x60);
  expect("ERROR of a doorbell while busy", read_register(0x10), 1);
  expect("STATUS with an error", read_register(4), 3);
  expect("ERROR_COMMAND", read_register(0x14), 0x60);
  while (read_register(4) & 1) {}
  expect("COMPLETED", read_register(8), 1);
  expect("BUSY_CYCLES", read_register(0xC), 28 + 401 + 12);
  expect("the event", events, 1);
  events = false;
  write_register(0, 4);
  while (read_register(4) & 1) {}
  expect("the event of an error", events, 1);
  expect("the first error stays", read_register(0x10), 1);
  expect("ERROR_COMMAND of the first error", read_register(0x14), 0x60);
  write_register(0x10, 77);
  expect("ERROR after clearing", read_register(0x10), 0);
  expect("ERROR_COMMAND after clearing", read_register(0x14), 0x60);
  expect("STATUS after clearing", read_register(4), 0);
  write_register(0, 4);
  while (read_register(4) & 1) {}
  expect("ERROR", read_register(0x10), 2);
  expect("ERROR_COMMAND", read_register(0x14), 4);
  expect("BUSY_CYCLES with errors", read_register(0xC), 28 + 401 + 12 + 2 * 28);
  write_register(0, 0);
  while (read_register(4) & 1) {}
  expect("it works in spite of the error", read_register(8), 2);
  return violations != 0;
}

static bool get(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  array = new Vmac_array;
  // Verilator prints to stdout, where only results belong.
  FILE *results = fdopen(dup(1), "wb");
  dup2(2, 1);
  if (argc > 1) return test_registers();
  uint32_t bytes, doorbell, seed;
  while (get(&bytes, 4)) {
    sram.resize(bytes);
    if (!get(sram.data(), bytes) || !get(&doorbell, 4) || !get(&seed, 4)) return 2;
    noise = 12345;
    uint32_t before = violations;
    reset();
    uint32_t state = seed, rarely = seed % 7 + 1, frozen = 0, busy = 0;
    bool enable = !seed || random_word(state) >> 8 & rarely;
    array->enable = enable;
    frozen += !enable;
    write_register(0, doorbell);
    for (;; busy++) {
      enable = !seed || random_word(state) >> 8 & rarely;
      array->enable = enable;
      if (!(read_register(4) & 1)) break;
      if (events) { fprintf(stderr, "the event of a busy array\n"); violations++; break; }
      if (!enable) frozen++;
      if (busy > 5000000) { fprintf(stderr, "does not end\n"); violations++; break; }
    }
    array->enable = 1;
    if (!events) { fprintf(stderr, "no event\n"); violations++; }
    uint32_t result[6] = {read_register(0x10), read_register(0x14), read_register(0x0C), frozen,
                          read_register(0x08)};
    if (result[2] != busy + 1) {
      fprintf(stderr, "BUSY_CYCLES %u, busy in %u cycles\n", result[2], busy);
      violations++;
    }
    result[5] = violations - before;
    fwrite(result, 4, 6, results);
    fwrite(sram.data(), 1, bytes, results);
    fflush(results);
  }
  return violations != 0;
}
