// SPDX-License-Identifier: Apache-2.0
// The waveform of a device in a span of cycles, as a VCD file. A cycle is a nanosecond of the file. A
// cycle begins with the rising edge, and the inputs of its end change in its middle. An idle device is
// not clocked: its clock stands still.
#ifndef WAVES_H
#define WAVES_H
#include <cstdint>
#include <memory>
#include <string>
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"

template <class Top> class Waves {
 public:
  void choose(const char *name, uint64_t from, uint64_t to) {
    file = name;
    first = from;
    last = to;
  }
  void falling(Top &top, uint64_t cycle) { dump(top, cycle, 5); }
  void rising(Top &top, uint64_t cycle) { dump(top, cycle, 0); }

 private:
  // Each line goes to the file at once: the emulator may end without notice.
  void dump(Top &top, uint64_t cycle, uint64_t tenths) {
    if (cycle < first || cycle > last) return;
    if (!vcd) open(top);
    vcd->dump(10 * cycle + tenths);
    vcd->flush();
  }

  void open(Top &top) {
    Verilated::traceEverOn(true);
    vcd = std::make_unique<VerilatedVcdC>();
    top.trace(vcd.get(), 99);
    vcd->set_time_unit("1ns");
    vcd->set_time_resolution("100ps");
    vcd->open(file.c_str());
  }

  std::unique_ptr<VerilatedVcdC> vcd;
  std::string file;
  uint64_t first = 1, last = 0;
};
#else
template <class Top> class Waves {
 public:
  void falling(Top &, uint64_t) {}
  void rising(Top &, uint64_t) {}
};
#endif
#endif
