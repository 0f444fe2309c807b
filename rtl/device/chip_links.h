// SPDX-License-Identifier: Apache-2.0
// The links of a chip's border in a direction: section 4.6 of the hardware manual. Call begin() before
// the evaluation of a cycle, and end() behind it with the flits that the routers have sent and the
// places that the facing routers have signalled.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

typedef std::array<uint8_t, 19> LinkWires;   // noc_pkg::link_t

struct ChipLinkFigures {
  uint32_t links, bytes_per_100_cycles, hop_cycles, places;   // places: for data, at the facing router
};

class Border {
 public:
  Border(uint32_t routers, const ChipLinkFigures &figures);
  void begin(uint64_t cycle);
  void end(uint64_t cycle, uint32_t router, const LinkWires &sent, int facing_credits);
  int credits(uint32_t router) const { return routers[router].credits; }
  const LinkWires &arriving(uint32_t router) const { return routers[router].arriving; }
  bool idle() const;                           // nothing happens without a further flit or credit

 private:
  struct Packet {
    std::vector<LinkWires> flits;
    uint64_t from = 0;
  };
  struct Place {
    uint64_t cycle;
    int kind;
  };
  struct Router {
    Packet incoming;
    std::deque<Packet> waiting[3];
    int room[3];                              // at the facing router
    std::deque<Place> freed, back;            // places at the facing router; of this border's buffer
    std::deque<Packet> crossing;              // to the facing router
    size_t sent = 0;
    int number = 0, credits = 0;
    LinkWires arriving = {};
  };
  void take_places(Router &router, uint64_t cycle);
  void deliver(Router &router, uint64_t cycle);
  bool grant(uint32_t link, uint64_t cycle);
  void cross(Router &router, int kind, uint32_t link, uint64_t cycle);

  ChipLinkFigures figures;
  std::vector<Router> routers;
  std::vector<uint64_t> free_from;            // each link
  uint32_t last;
};
