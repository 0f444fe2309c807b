// SPDX-License-Identifier: Apache-2.0
// The network of a board for the emulator (network_device.h): a node in RTL for each PE (pe_node.sv,
// without its array), DRAMs (dram.h) and chip links (chip_links.h) in C++. A node's links, credits and
// `busy` are functions of its registers: nodes are evaluated by themselves, and only while they change.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>
#include "Vdevice.h"
#include "chip_links.h"
#include "dram.h"
#include "network_device.h"
#include "verilated.h"

// Ports of a node's links. Port i faces port (i + 2) % 4 of the neighbour.
static const uint32_t North = 0, East = 1, South = 2, West = 3, ToDram = 4, Ports = 5;
static const uint32_t NoPe = UINT32_MAX, Wires = sizeof(LinkWires), Banks = 8;

// The PE whose assertion may fail now.
static const network_place *asserting = nullptr;
static uint32_t asserting_pe = 0;

void vl_stop(const char *file, int line, const char *) {
  char where[96];
  const char *name = strrchr(file, '/');
  snprintf(where, sizeof where, "%s:%d", name ? name + 1 : file, line);
  if (asserting) asserting->services->failed(asserting->host, asserting_pe, where);
}

static uint32_t figure(const network_place *place, const char *name) {
  for (uint32_t i = 0; i < place->figure_count; i++) {
    if (!strcmp(place->figures[i].name, name)) return uint32_t(place->figures[i].value);
  }
  return 0;
}

struct Store {
  uint64_t cycle;
  uint32_t offset, value;
};

class ChipDram : public Dram {
 public:
  ChipDram(const network_place *place, uint32_t chip) : place(place), number(NETWORK_DRAM + chip) { reset(); }
  uint8_t load(uint32_t address) override { return place->services->memory(place->host, number)[address]; }
  void store(uint32_t address, uint8_t value) override {
    place->services->store(place->host, number, address, 1, &value);
  }

 private:
  const network_place *place;
  const uint32_t number;
};

// A PE's router and DMA.
class Node {
 public:
  Vdevice top;
  std::deque<Store> stores;
  Border *borders[Ports] = {};           // of outputs that leave the chip
  uint32_t places[Ports] = {};           // along the border
  uint32_t neighbours[Ports];            // NoPe: none

  Node(const network_place *place, uint32_t pe) : place(place), pe(pe), sram_bytes(figure(place, "sram_bytes")) {}

  void reset() {
    top.reset = 1;
    for (int i = 0; i < 3; i++) {
      settle();
      rise();
    }
    top.reset = 0;
  }

  LinkWires sent(uint32_t port) const {
    LinkWires wires;
    memcpy(wires.data(), bytes(&top.out[0]) + Wires * port, Wires);
    return wires;
  }
  bool sends(uint32_t port) const { return bytes(&top.out[0])[Wires * port + Wires - 1] >> 7; }
  int credits(uint32_t port) const { return top.in_credits >> 3 * port & 7; }
  void receive(uint32_t port, const LinkWires &wires, int credits) {
    memcpy(const_cast<uint8_t *>(bytes(&top.in[0])) + Wires * port, wires.data(), Wires);
    top.out_credits = (top.out_credits & ~(7 << 3 * port)) | credits << 3 * port;
  }

  uint32_t read(uint32_t offset) {
    top.register_read = 1;
    top.register_offset = offset;
    top.eval();
    const uint32_t value = top.register_rdata;
    top.register_read = 0;
    return value;
  }

  // The store of this cycle, or an earlier one.
  void take_store(uint64_t cycle) {
    top.register_write = !stores.empty() && stores.front().cycle <= cycle;
    if (!top.register_write) return;
    top.register_offset = stores.front().offset;
    top.register_wdata = stores.front().value;
    stores.pop_front();
  }

  // The middle of a cycle: all inputs are there.
  void settle() {
    asserting = place;
    asserting_pe = pe;
    top.clock = 0;
    top.eval();
  }

  void report() const {
    const network_services *services = place->services;
    if (top.moves) services->took_port(place->host, pe);
    if (top.done) services->happened(place->host, pe, NETWORK_DONE, 0);
    for (int i = 0; i < 2; i++) {
      if (top.count >> i & 1) services->happened(place->host, pe, NETWORK_COUNTED, top.count_index >> 6 * i & 63);
    }
  }

  // The end of a cycle.
  void rise() {
    uint32_t words[Banks] = {};
    access_banks(words);
    asserting_pe = pe;
    top.clock = 1;
    top.eval();
    top.register_write = top.dram_wrong_crc = top.dram_wrong_number = 0;
    for (uint32_t bank = 0; bank < Banks; bank++) top.bank_rdata[bank] = words[bank];
  }

  void report_behind() {
    const network_services *services = place->services;
    if (top.error > 1 && !error) services->happened(place->host, pe, NETWORK_FAILED, top.error);
    error = top.error;
    if (top.event_set) services->happened(place->host, pe, NETWORK_WOKEN, 0);
  }

 private:
  static const uint8_t *bytes(const WData *words) { return reinterpret_cast<const uint8_t *>(words); }

  void access_banks(uint32_t *words) {
    if (!top.bank_select) return;
    const uint8_t *memory = place->services->memory(place->host, pe);
    for (uint32_t bank = 0; bank < Banks; bank++) {
      if (!(top.bank_select >> bank & 1)) continue;
      const uint32_t row = 12 * bank, low = top.bank_address[row / 32] >> row % 32;
      const uint32_t high = row % 32 > 20 ? top.bank_address[row / 32 + 1] << (32 - row % 32) : 0;
      const uint32_t address = ((low | high) & 0xFFF) * 4 * Banks + 4 * bank;
      if (address >= sram_bytes) continue;
      if (top.bank_write >> bank & 1) {
        uint8_t data[4];
        memcpy(data, &top.bank_wdata[bank], 4);
        place->services->store(place->host, pe, address, top.bank_mask >> 4 * bank & 15, data);
      } else {
        memcpy(&words[bank], memory + address, 4);
      }
    }
  }

  const network_place *place;
  const uint32_t pe, sram_bytes;
  uint32_t error = 0;
};

class Network {
 public:
  explicit Network(const network_place *place)
      : place(place), chip_columns(figure(place, "chip_columns")), chip_rows(figure(place, "chip_rows")),
        columns(figure(place, "columns")), rows(figure(place, "rows")) {
    const uint32_t chips = chip_columns * chip_rows;
    nodes.resize(size_t(chips) * columns * rows);
    is_due.resize(nodes.size());
    drams.resize(chips);
    borders.resize(size_t(chips) * 4);
  }

  uint32_t read(uint32_t pe, uint32_t offset) { return node(pe).read(offset); }

  void write(uint32_t pe, uint32_t offset, uint32_t value) {
    node(pe).stores.push_back({place->services->now(place->host), offset, value});
    ask(pe);
    place->services->clock(place->host);
  }

  bool tick() {
    const uint64_t cycle = place->services->now(place->host) - 1;
    for (uint32_t i = 0; i < borders.size(); i++) {
      if (borders[i] && !borders[i]->idle()) begin_border(i, cycle);
    }
    std::vector<uint32_t> now;
    now.swap(due);
    for (uint32_t pe : now) is_due[pe] = false;
    std::sort(now.begin(), now.end());
    for (uint32_t pe : now) gather(pe, cycle);
    for (uint32_t pe : now) leave_chip(pe, cycle);
    for (uint32_t pe : now) nodes[pe]->rise();
    for (uint32_t pe : now) nodes[pe]->report_behind();
    for (uint32_t pe : now) ask_further(pe);
    bool busy = !due.empty();
    for (auto &border : borders) busy = busy || (border && !border->idle());
    return busy;
  }

 private:
  // The nodes of a board exist once they are used.
  Node &node(uint32_t pe) {
    if (!nodes[pe]) create(pe);
    return *nodes[pe];
  }

  void create(uint32_t pe) {
    const uint32_t chip = pe / (columns * rows), inside = pe % (columns * rows);
    const uint32_t left = chip % chip_columns * columns, top = chip / chip_columns * rows;
    nodes[pe] = std::make_unique<Node>(place, pe);
    Node &made = *nodes[pe];
    made.top.pe = pe;
    made.top.chip = chip;
    made.top.corner_x = uint8_t(left);
    made.top.corner_y = uint8_t(top);
    made.top.x = uint8_t(left + inside % columns);
    made.top.y = uint8_t(top + inside / columns);
    if (inside == 0) drams[chip] = std::make_unique<ChipDram>(place, chip);
    for (uint32_t port = 0; port < Ports; port++) link(made, chip, inside, port);
    made.reset();
  }

  // Where an output goes to.
  void link(Node &made, uint32_t chip, uint32_t inside, uint32_t port) {
    static const int Right[Ports] = {0, 1, 0, -1, 0}, Down[Ports] = {-1, 0, 1, 0, 0};
    const int x = made.top.x + Right[port], y = made.top.y + Down[port];
    const bool outside = x < 0 || y < 0 || x >= int(columns * chip_columns) || y >= int(rows * chip_rows);
    made.neighbours[port] = NoPe;
    if (port == ToDram || outside) return;
    const uint32_t there = uint32_t(y) / rows * chip_columns + uint32_t(x) / columns;
    made.neighbours[port] = (there * rows + uint32_t(y) % rows) * columns + uint32_t(x) % columns;
    if (there == chip) return;
    const bool along_x = port == North || port == South;
    made.places[port] = along_x ? inside % columns : inside / columns;
    auto &border = borders[4 * chip + port];
    if (!border) border = std::make_unique<Border>(along_x ? columns : rows, chip_links());
    made.borders[port] = border.get();
  }

  ChipLinkFigures chip_links() const {
    return {figure(place, "chip_links_per_border"), figure(place, "chip_link_bytes_per_100_cycles"),
            figure(place, "chip_hop_cycles"), figure(place, "border_packets")};
  }

  void ask(uint32_t pe) {
    if (pe == NoPe || is_due[pe]) return;
    node(pe);
    is_due[pe] = true;
    due.push_back(pe);
  }

  // Ask for the routers at both ends of a chip's border with a flit or a free place.
  void begin_border(uint32_t number, uint64_t cycle) {
    Border &border = *borders[number];
    const uint32_t chip = number / 4, port = number % 4;
    const bool along_x = port == North || port == South;
    border.begin(cycle);
    for (uint32_t place = 0; place < (along_x ? columns : rows); place++) {
      const uint32_t x = along_x ? place : port == East ? columns - 1 : 0;
      const uint32_t y = !along_x ? place : port == South ? rows - 1 : 0;
      const uint32_t pe = (chip * rows + y) * columns + x;
      if (border.credits(place)) ask(pe);
      if (border.arriving(place)[Wires - 1] >> 7) ask(nodes[pe]->neighbours[port]);
    }
  }

  void gather(uint32_t pe, uint64_t cycle) {
    Node &here = *nodes[pe];
    for (uint32_t port = 0; port < ToDram; port++) {
      const uint32_t facing = (port + 2) % 4, other = here.neighbours[port];
      const Node *from = other == NoPe ? nullptr : nodes[other].get();
      if (here.borders[port]) {
        const LinkWires none = {};
        const auto &wires = from ? from->borders[facing]->arriving(from->places[facing]) : none;
        here.receive(port, wires, here.borders[port]->credits(here.places[port]));
      } else if (!from) {
        here.receive(port, {}, 0);
      } else {
        here.receive(port, from->sent(facing), from->credits(facing));
      }
    }
    here.take_store(cycle);
    Dram *dram = dram_at(pe);
    if (dram) begin_dram(here, *dram, cycle);
    here.settle();
    here.report();
    if (dram) end_dram(here, *dram, cycle);
  }

  Dram *dram_at(uint32_t pe) { return pe % (columns * rows) ? nullptr : drams[pe / (columns * rows)].get(); }

  void begin_dram(Node &here, Dram &dram, uint64_t cycle) {
    int credits;
    const Link link = dram.begin(long(cycle), credits);
    LinkWires wires;
    memcpy(wires.data(), link.flit, sizeof link.flit);
    wires[16] = uint8_t(link.crc);
    wires[17] = uint8_t(link.crc >> 8);
    wires[18] = uint8_t(link.valid << 7 | link.tail << 6 | link.kind << 4 | link.number);
    here.receive(ToDram, wires, credits);
  }

  void end_dram(Node &here, Dram &dram, uint64_t cycle) {
    const LinkWires wires = here.sent(ToDram);
    Link link;
    memcpy(link.flit, wires.data(), sizeof link.flit);
    link.crc = uint16_t(wires[16] | wires[17] << 8);
    link.valid = wires[18] >> 7;
    link.tail = wires[18] >> 6 & 1;
    link.kind = wires[18] >> 4 & 3;
    link.number = wires[18] & 15;
    dram.end(long(cycle), link, here.credits(ToDram));
    here.top.dram_wrong_crc = dram.wrong_crc;
    here.top.dram_wrong_number = dram.wrong_number;
  }

  // The flits that leave the chip, and the places at inputs behind a border.
  void leave_chip(uint32_t pe, uint64_t cycle) {
    const Node &here = *nodes[pe];
    for (uint32_t port = 0; port < ToDram; port++) {
      if (!here.borders[port]) continue;
      if (here.sends(port)) here.borders[port]->end(cycle, here.places[port], here.sent(port), 0);
      const uint32_t facing = (port + 2) % 4;
      const Node &other = node(here.neighbours[port]);
      if (here.credits(port)) other.borders[facing]->end(cycle, other.places[facing], {}, here.credits(port));
    }
  }

  // The nodes of the next cycle.
  void ask_further(uint32_t pe) {
    const Node &here = *nodes[pe];
    const Dram *dram = dram_at(pe);
    if (here.top.busy || !here.stores.empty() || (dram && !dram->idle())) ask(pe);
    for (uint32_t port = 0; port < Ports; port++) {
      if (!here.sends(port) && !here.credits(port)) continue;
      ask(pe);                               // its own links end, and the DRAM or the border takes them
      if (!here.borders[port]) ask(here.neighbours[port]);
    }
  }

  const network_place *place;
  const uint32_t chip_columns, chip_rows, columns, rows;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<bool> is_due;
  std::vector<uint32_t> due;
  std::vector<std::unique_ptr<ChipDram>> drams;
  std::vector<std::unique_ptr<Border>> borders;   // [chip][port]
};

static Network *network_of(void *state) { return static_cast<Network *>(state); }
static void *start(const network_place *place) { return new Network(place); }
static uint32_t read_register(void *state, uint32_t pe, uint32_t offset) { return network_of(state)->read(pe, offset); }
static void write_register(void *state, uint32_t pe, uint32_t offset, uint32_t value) {
  network_of(state)->write(pe, offset, value);
}
static bool tick(void *state) { return network_of(state)->tick(); }
static void end(void *state) { delete network_of(state); }

extern "C" DEVICE_EXPORT const network_model DEVICE;
const network_model DEVICE = {NETWORK_ABI, start, read_register, write_register, tick, end};
