// SPDX-License-Identifier: Apache-2.0
// A device in Verilog, compiled by Verilator, as a clocked model of the emulator (device.h). The ports
// of the top module: README.md of the folder rtl. Reads of registers have no effect on the device.
#ifndef RTL_DEVICE_H
#define RTL_DEVICE_H
#include <cstdio>
#include <cstring>
#include <deque>
#include "device.h"
#include "verilated.h"
#include "waves.h"

// The device whose assertion may fail now.
static const device_place *asserting = nullptr;

void vl_stop(const char *file, int line, const char *) {
  char where[96];
  const char *name = strrchr(file, '/');
  snprintf(where, sizeof where, "%s:%d does not hold", name ? name + 1 : file, line);
  if (asserting) asserting->services->undefined(asserting->host, "an assertion of the RTL,", where, 0);
}

template <class Top> class RtlDevice {
 public:
  Waves<Top> waves;

  explicit RtlDevice(const device_place *place) : place(place) {
    top.enable = top.reset = 1;
    for (int i = 0; i < 3; i++) edge();
    top.reset = 0;
    edge();
  }

  // The registers before the end of the cycle.
  uint32_t read(uint32_t offset) {
    top.register_read = 1;
    top.register_offset = offset;
    top.eval();
    uint32_t value = top.register_rdata;
    top.register_read = 0;
    return value;
  }

  // The RTL sees the store at the end of its cycle.
  void write(uint32_t offset, uint32_t value) {
    stores.push_back({place->services->now(place->host), offset, value});
    place->services->clock(place->host);
  }

  bool tick() {
    const device_services *services = place->services;
    const uint64_t now = services->now(place->host);
    asserting = place;
    top.enable = services->port_free(place->host);
    top.register_write = !stores.empty() && stores.front().cycle < now;
    if (top.register_write) {
      top.register_offset = stores.front().offset;
      top.register_wdata = stores.front().value;
      stores.pop_front();
    }
    top.clock = 0;
    top.eval();
    waves.falling(top, now - 1);
    const bool reads = access_port();
    top.clock = 1;
    top.eval();
    waves.rising(top, now);
    top.register_write = 0;
    if (reads) memcpy(&top.port_rdata[0], data, sizeof data);
    report(now);
    return top.busy || !stores.empty();
  }

 private:
  struct Store {
    uint64_t cycle;
    uint32_t offset, value;
  };

  // One cycle without port.
  void edge() {
    top.clock = 0;
    top.eval();
    top.clock = 1;
    top.eval();
  }

  // The port in this cycle. True if the RTL reads: it has the data in the next cycle.
  bool access_port() {
    const device_services *services = place->services;
    if (!top.port_request) return false;
    if (!top.port_write)
      return services->port_read(place->host, top.port_address, top.port_bytes, data);
    services->port_write(place->host, top.port_address, top.port_bytes, top.port_strobe,
                         reinterpret_cast<const uint8_t *>(&top.port_wdata[0]));
    return false;
  }

  // A work begins in the cycle of its store, which is the cycle before busy.
  void report(uint64_t now) {
    const device_services *services = place->services;
    if (top.busy && !worked) begun = now - 1;
    worked = top.busy;
    if (top.work_end) {
      services->count_busy(place->host, now - begun);
      begun = now;
    }
    if (top.event_set) services->set_event(place->host);
  }

  const device_place *place;
  Top top;
  std::deque<Store> stores;
  uint64_t begun = 0;
  bool worked = false;
  uint8_t data[DEVICE_WIDE] = {};
};

// The device's `struct device_model`, NAME_device.
template <class Top> struct RtlModel {
  struct State {
    RtlDevice<Top> *device;
  };
  static RtlDevice<Top> *device(void *state) { return static_cast<State *>(state)->device; }
  static const char *start(void *state, const device_place *place) {
    static_cast<State *>(state)->device = new RtlDevice<Top>(place);
    return nullptr;
  }
  static uint32_t read(void *state, uint32_t offset) { return device(state)->read(offset); }
  static void write(void *state, uint32_t offset, uint32_t value) { device(state)->write(offset, value); }
  static bool tick(void *state) { return device(state)->tick(); }
  static void end(void *state) { delete device(state); }
};
#endif
