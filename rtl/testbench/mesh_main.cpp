// SPDX-License-Identifier: Apache-2.0
// Runs scripts on a chip of PEs. Scripts come from stdin, results go to stdout. Everything is a little
// endian u32, bytes are padded with zeros to a multiple of 4. A script is a list of records, their kind
// first; stdin may hold several scripts.
//   0 RUN    limit, settle            run, and write the result: the end of the script
//   1 SRAM   pe, address, n, bytes    bytes before the start; all other memory is 0
//   2 DRAM   address, n, bytes
//   3 STORE  cycle, pe, device, offset, value    device 0: the DMA's registers, 1: the array's
//   4 LOAD   cycle, pe, device, offset           a PE makes one access in a cycle
//   5 FAULT  cycle, pe, port, flit, bit          into port 1 to 5 of the PE's router: flips a bit
//            (0 to 143, from 128 on the CRC's) of a flit of the first packet that begins in this
//            cycle or later; with bit 0xFFFFFFFF the whole packet is lost
//   6 WANT SRAM   pe, address, n
//   7 WANT DRAM   address, n
//   8 WATCH  pe                       lists the cycles in which bytes of this PE's DMA move
// Cycle 0 is the first without reset. A store of cycle t is the core's store in t. A load shows the
// register in its cycle. The run ends when all records are done and nothing has moved for `settle`
// cycles, or in cycle `limit`. The result:
//   columns, rows, cycles, 1 if the limit ended the run, failed assertions
//   n, then n times: cycle, pe, flag      a count, and the first cycle in which a load shows it
//   n, then n times: cycle, pe            the event register is set
//   n, then n times: cycle, pe            a descriptor is done (the cycle in which COMPLETED shows it)
//   n, then n times: cycle, pe, error     ERROR has changed
//   n, then n times: cycle, pe            watched cycles
//   n, then n values                      of the loads, in the order of the script
//   for each PE: the DMA's ERROR, COMPLETED, STATUS, the array's ERROR, COMPLETED, BUSY_CYCLES
//   the bytes wanted, in the order of the script
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
#include "Vmesh.h"
#include "svdpi.h"
#include "Vmesh__Dpi.h"
#include "dram.h"
#include "verilated.h"

#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef ROWS
#define ROWS 4
#endif
static const int Pes = COLUMNS * ROWS;

static uint32_t violations = 0;
void vl_stop(const char *file, int line, const char *) {
  if (violations < 20) fprintf(stderr, "assertion at %s:%d\n", file, line);
  violations++;
}

typedef std::vector<uint32_t> Words;
struct Access { uint32_t pe, device, offset, value; bool store; size_t load; };
struct Fault { uint32_t cycle, pe, port, flit, bit; bool running = false, over = false; uint32_t at = 0; };
struct Want { bool dram; uint32_t pe, address, bytes; };

static Vmesh *mesh;
static Dram dram;
static FILE *results;

static bool get(uint32_t *words, size_t n) { return fread(words, 4, n, stdin) == n; }
static std::vector<uint8_t> get_bytes(uint32_t n) {
  std::vector<uint8_t> bytes((n + 3) / 4 * 4);
  if (fread(bytes.data(), 1, bytes.size(), stdin) != bytes.size()) exit(2);
  bytes.resize(n);
  return bytes;
}
static void sram_scope(uint32_t pe) {
  std::string name = "TOP.mesh.pes[" + std::to_string(pe) + "].sram";
  svSetScope(svGetScopeFromName(name.c_str()));
}
static uint8_t sram_byte(uint32_t address) {
  return sram_load(address >> 2 & 0x7FFF) >> address % 4 * 8;
}
static void set_sram_byte(uint32_t address, uint8_t value) {
  uint32_t shift = address % 4 * 8, index = address >> 2 & 0x7FFF;
  sram_store(index, (sram_load(index) & ~(0xFFu << shift)) | uint32_t(value) << shift);
}
static void put(uint32_t word) { fwrite(&word, 4, 1, results); }
static void put(const Words &words, size_t each) {
  put(words.size() / each);
  fwrite(words.data(), 4, words.size(), results);
}

static void drive(const Link &link) {
  uint32_t words[5];
  memcpy(words, link.flit, 16);
  words[4] = link.crc | link.number << 16 | link.kind << 20 | link.tail << 22 | link.valid << 23;
  for (int i = 0; i < 5; i++) mesh->dram_in[i] = words[i];
}
static Link sense() {
  uint32_t words[5];
  for (int i = 0; i < 5; i++) words[i] = mesh->dram_out[i];
  Link link;
  memcpy(link.flit, words, 16);
  link.crc = words[4];
  link.number = words[4] >> 16 & 15;
  link.kind = words[4] >> 20 & 3;
  link.tail = words[4] >> 22 & 1;
  link.valid = words[4] >> 23 & 1;
  return link;
}

static void idle_inputs() {
  for (int p = 0; p < Pes; p++) mesh->register_read[p] = mesh->register_write[p] = 0;
  mesh->fault_pe = Pes;
  mesh->fault_port = 1;
  mesh->fault_lose = 0;
  for (int i = 0; i < 5; i++) mesh->fault_flip[i] = 0;
}

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  mesh = new Vmesh;
  results = fdopen(dup(1), "wb");
  dup2(2, 1);                            // Verilator prints to stdout
  uint32_t kind, w[5];
  std::multimap<uint32_t, Access> accesses;
  std::vector<Fault> faults;
  std::vector<Want> wants;
  std::vector<bool> watched(Pes);
  size_t loads = 0;
  bool fresh = true;
  while (get(&kind, 1)) {
    if (fresh) {
      for (int p = 0; p < Pes; p++) {
        sram_scope(p);
        for (uint32_t i = 0; i < 32768; i++) sram_store(i, 0);
      }
      dram.clear();
      accesses.clear();
      faults.clear();
      wants.clear();
      watched.assign(Pes, false);
      loads = 0;
      fresh = false;
    }
    if (kind == 1 && get(w, 3)) {
      auto bytes = get_bytes(w[2]);
      sram_scope(w[0]);
      for (uint32_t i = 0; i < w[2]; i++) set_sram_byte(w[1] + i, bytes[i]);
    } else if (kind == 2 && get(w, 2)) {
      auto bytes = get_bytes(w[1]);
      for (uint32_t i = 0; i < w[1]; i++) dram.byte(w[0] + i) = bytes[i];
    } else if (kind == 3 && get(w, 5)) {
      accesses.insert({w[0], {w[1], w[2], w[3], w[4], true, 0}});
    } else if (kind == 4 && get(w, 4)) {
      accesses.insert({w[0], {w[1], w[2], w[3], 0, false, loads++}});
    } else if (kind == 5 && get(w, 5)) {
      Fault fault;
      fault.cycle = w[0], fault.pe = w[1], fault.port = w[2], fault.flit = w[3], fault.bit = w[4];
      faults.push_back(fault);
    } else if (kind == 6 && get(w, 3)) wants.push_back({false, w[0], w[1], w[2]});
    else if (kind == 7 && get(w, 2)) wants.push_back({true, 0, w[0], w[1]});
    else if (kind == 8 && get(w, 1)) watched[w[0]] = true;
    else if (kind != 0 || !get(w, 2)) return 2;
    if (kind != 0) continue;

    // --- The run.
    fresh = true;
    uint32_t limit = w[0], settle = w[1], quiet = 0, before = violations, cycle = 0;
    Words counts, events, dones, errors, moves, values(loads);
    std::vector<uint32_t> error(Pes);
    idle_inputs();
    drive(Link());
    dram.reset();
    mesh->dram_out_credits = mesh->dram_wrong_crc = mesh->dram_wrong_number = 0;
    mesh->reset = 1;
    for (int i = 0; i < 3; i++) {
      mesh->clock = 0;
      mesh->eval();
      mesh->clock = 1;
      mesh->eval();
    }
    mesh->reset = 0;
    bool was_busy = true;
    for (; cycle < limit && (quiet < settle || was_busy); cycle++) {
      idle_inputs();
      for (auto i = accesses.begin(); i != accesses.end() && i->first == cycle; i = accesses.erase(i)) {
        const Access &a = i->second;
        mesh->select_array[a.pe] = a.device;
        mesh->register_offset[a.pe] = a.offset;
        mesh->register_wdata[a.pe] = a.value;
        (a.store ? mesh->register_write : mesh->register_read)[a.pe] = 1;
        if (a.store) continue;
        mesh->clock = 0;
        mesh->eval();
        values[a.load] = mesh->register_rdata[a.pe];
      }
      int credits;
      drive(dram.begin(cycle, credits));
      mesh->dram_out_credits = credits;
      mesh->dram_wrong_crc = mesh->dram_wrong_number = 0;
      mesh->clock = 0;
      mesh->eval();
      for (auto &f : faults) {
        if (f.over || f.cycle > cycle) continue;
        mesh->fault_pe = f.pe;
        mesh->fault_port = f.port;
        mesh->fault_lose = 0;
        for (int i = 0; i < 5; i++) mesh->fault_flip[i] = 0;
        mesh->eval();
        if (!mesh->fault_valid) continue;
        f.running = true;
        if (f.bit >= 144) mesh->fault_lose = 1;
        else if (f.at == f.flit) mesh->fault_flip[f.bit / 32] = 1u << f.bit % 32;
        f.at++;
        if (mesh->fault_tail) f.over = true;
        mesh->eval();
        break;                           // a fault at a time
      }
      dram.end(cycle, sense(), mesh->dram_in_credits);
      mesh->dram_wrong_crc = dram.wrong_crc;
      mesh->dram_wrong_number = dram.wrong_number;
      was_busy = mesh->active || !dram.idle() || !accesses.empty();
      for (uint32_t p = 0; p < Pes; p++) {
        for (int i = 0; i < 2; i++) if (mesh->count[p] >> i & 1)
          counts.insert(counts.end(), {cycle + 1, p, uint32_t(mesh->count_index[p]) >> 6 * i & 63});
        if (mesh->done[p]) dones.insert(dones.end(), {cycle + 1, p});
        if (mesh->event_set[p]) events.insert(events.end(), {cycle, p});
        if (mesh->error[p] != error[p]) {
          error[p] = mesh->error[p];
          errors.insert(errors.end(), {cycle, p, error[p]});
        }
        if (watched[p] && mesh->moves[p]) moves.insert(moves.end(), {cycle, p});
      }
      quiet = was_busy ? 0 : quiet + 1;
      mesh->clock = 1;
      mesh->eval();
    }

    put(COLUMNS);
    put(ROWS);
    put(cycle);
    put(was_busy);
    Words finals;
    for (int p = 0; p < Pes; p++) for (uint32_t device = 0; device < 2; device++) {
      static const uint32_t offsets[2][3] = {{0x0C, 0x08, 0x04}, {0x10, 0x08, 0x0C}};
      for (uint32_t offset : offsets[device]) {
        idle_inputs();
        mesh->register_read[p] = 1;
        mesh->select_array[p] = device;
        mesh->register_offset[p] = offset;
        mesh->clock = 0;
        mesh->eval();
        finals.push_back(mesh->register_rdata[p]);
      }
    }
    put(violations - before);
    put(counts, 3);
    put(events, 2);
    put(dones, 2);
    put(errors, 3);
    put(moves, 2);
    put(values, 1);
    fwrite(finals.data(), 4, finals.size(), results);
    for (auto &want : wants) {
      std::vector<uint8_t> bytes((want.bytes + 3) / 4 * 4);
      if (!want.dram) sram_scope(want.pe);
      for (uint32_t i = 0; i < want.bytes; i++)
        bytes[i] = want.dram ? dram.byte(want.address + i) : sram_byte(want.address + i);
      fwrite(bytes.data(), 1, bytes.size(), results);
    }
    fflush(results);
  }
  return violations != 0;
}
