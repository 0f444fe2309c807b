// SPDX-License-Identifier: Apache-2.0
#include "chip_links.h"

static const int Data = 0, Classes = 3, FlitBytes = 16, Last = 18;   // Last: the byte of valid, tail, class, number

static bool is_valid(const LinkWires &wires) { return wires[Last] >> 7; }
static bool is_tail(const LinkWires &wires) { return wires[Last] >> 6 & 1; }
static int kind_of(const LinkWires &wires) { return wires[Last] >> 4 & 3; }
static uint32_t lists_of(const LinkWires &header) { return (header[0] >> 5 | header[1] << 3) & 15; }

Border::Border(uint32_t count, const ChipLinkFigures &figures)
    : figures(figures), routers(count), free_from(figures.links), last(count - 1) {
  for (auto &router : routers) {
    router.room[0] = int(figures.places);
    router.room[1] = router.room[2] = 1;
  }
}

// Places that are free at the facing router; a place of the own buffer is signalled, of a class at most one in a cycle.
void Border::take_places(Router &router, uint64_t cycle) {
  while (!router.freed.empty() && router.freed.front().cycle <= cycle) {
    router.room[router.freed.front().kind]++;
    router.freed.pop_front();
  }
  router.credits = 0;
  for (size_t i = 0; i < router.back.size();) {
    const Place place = router.back[i];
    if (place.cycle > cycle || router.credits >> place.kind & 1) {
      i++;
      continue;
    }
    router.credits |= 1 << place.kind;
    router.back.erase(router.back.begin() + long(i));
  }
}

// The flit on the facing router's link. Numbers count the packets of this link.
void Border::deliver(Router &router, uint64_t cycle) {
  router.arriving = {};
  if (router.crossing.empty() || (router.sent == 0 && router.crossing.front().from > cycle)) return;
  router.arriving = router.crossing.front().flits[router.sent++];
  router.arriving[Last] = uint8_t((router.arriving[Last] & 0xF0) | (router.number & 15));
  if (!is_tail(router.arriving)) return;
  router.crossing.pop_front();
  router.sent = 0;
  router.number++;
}

// A packet is on the link for its cycles. It may be granted by the facing router chip_hop_cycles later: in the cycle
// behind its header, or behind its list.
void Border::cross(Router &router, int kind, uint32_t link, uint64_t cycle) {
  Packet packet = router.waiting[kind].front();
  router.waiting[kind].pop_front();
  const uint64_t bytes = 100 * packet.flits.size() * FlitBytes, width = figures.bytes_per_100_cycles;
  const uint64_t end = cycle + (bytes + width - 1) / width;
  free_from[link] = end;
  router.room[kind]--;
  router.back.push_back({end, kind});
  packet.from = end + figures.hop_cycles - 1 - (kind == Data ? lists_of(packet.flits[0]) : 0);
  // In the order of arrival, behind all packets of the same class.
  auto at = router.crossing.end();
  const auto first = router.crossing.begin() + (router.sent > 0 ? 1 : 0);
  while (at != first && (at - 1)->from > packet.from && kind_of((at - 1)->flits[0]) != kind) at--;
  router.crossing.insert(at, packet);
}

// The first router behind the last one with a packet, and its highest class.
bool Border::grant(uint32_t link, uint64_t cycle) {
  for (uint32_t i = 0; i < routers.size(); i++) {
    const uint32_t place = uint32_t((last + 1 + i) % routers.size());
    Router &router = routers[place];
    for (int kind = Classes - 1; kind >= 0; kind--) {
      const auto &waiting = router.waiting[kind];
      if (waiting.empty() || waiting.front().from > cycle || router.room[kind] == 0) continue;
      last = place;
      cross(router, kind, link, cycle);
      return true;
    }
  }
  return false;
}

void Border::begin(uint64_t cycle) {
  for (auto &router : routers) take_places(router, cycle);
  for (uint32_t link = 0; link < figures.links; link++) {
    if (free_from[link] <= cycle && !grant(link, cycle)) break;
  }
  for (auto &router : routers) deliver(router, cycle);
}

void Border::end(uint64_t cycle, uint32_t number, const LinkWires &sent, int facing_credits) {
  Router &router = routers[number];
  for (int kind = 0; kind < Classes; kind++) {
    if (facing_credits >> kind & 1) router.freed.push_back({cycle + figures.hop_cycles, kind});
  }
  if (!is_valid(sent)) return;
  router.incoming.flits.push_back(sent);
  if (!is_tail(sent)) return;
  router.incoming.from = cycle + 1;
  router.waiting[kind_of(sent)].push_back(router.incoming);
  router.incoming = {};
}

bool Border::idle() const {
  for (const Router &router : routers) {
    if (is_valid(router.arriving) || router.credits || !router.crossing.empty()) return false;
    if (!router.back.empty() || !router.freed.empty()) return false;
    for (auto &waiting : router.waiting) if (!waiting.empty()) return false;
  }
  return true;
}
