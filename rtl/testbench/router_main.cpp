// SPDX-License-Identifier: Apache-2.0
// Random packets through one router at x = 1, y = 2 of a board of 4 x 4, with a DRAM.
// It checks outputs, order, flits, numbers and free places, and the cycles of a lone packet. The exit
// code is 1 on a violation.
//   router_main [packets] [seed]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <vector>
#include "Vnoc_router.h"
#include "verilated.h"

static uint32_t violations = 0;
void vl_stop(const char *file, int line, const char *) {
  fprintf(stderr, "assertion at %s:%d\n", file, line);
  violations++;
}

struct Packet {
  int kind, input, outputs;
  int list;                      // flits behind the header until the outputs are known
  long sent;
  std::vector<uint32_t> flits;   // five words each: the flit and 16 bits of CRC
};
struct Source { std::deque<Packet> queue; size_t at = 0; int places[3] = {2, 1, 1}; int number = 0; };
struct Sink {
  Packet *packet = nullptr;
  size_t at = 0;
  int number = 0, held[3] = {};
  std::deque<Packet *> from[6][3];   // packets that should come, for each input and class
};

static uint32_t state = 1;
static uint32_t random_word() {
  state ^= state << 13;
  state ^= state >> 17;
  return state ^= state << 5;
}

static int route(int x, int y, bool dram) {
  return x < 1 ? 4 : x > 1 ? 2 : y < 2 ? 1 : y > 2 ? 3 : dram ? 5 : 0;
}

static void put(uint32_t *words, int from, int bits, uint64_t value) {
  for (int i = 0; i < bits; i++) {
    words[(from + i) / 32] &= ~(1u << (from + i) % 32);
    words[(from + i) / 32] |= uint32_t(value >> i & 1) << (from + i) % 32;
  }
}
static uint32_t get(const uint32_t *words, int from, int bits) {
  uint32_t value = 0;
  for (int i = 0; i < bits; i++) value |= (words[(from + i) / 32] >> (from + i) % 32 & 1) << i;
  return value;
}

static Packet random_packet(int input) {
  Packet p;
  p.input = input;
  p.outputs = 0;
  int list = 0, flits = 1;
  bool ends_early = false;
  p.kind = random_word() % 8 < 6 ? 0 : random_word() % 2 + 1;
  if (p.kind == 0) {
    list = random_word() % 3 ? 0 : random_word() % 15 + 1;
    flits = 1 + list + (random_word() % 2 ? random_word() % (32 - list) : 0);
    // A flipped bit of the header: the packet ends before its list, and goes to output 0.
    ends_early = random_word() % 8 == 0;
    if (ends_early) list = random_word() % 15 + 1, flits = random_word() % list + 1;
  } else if (p.kind == 1) flits = 2 + random_word() % 16;
  p.flits.resize(5 * flits);
  for (auto &word : p.flits) word = random_word();
  uint32_t *header = p.flits.data();
  int x, y;
  // No packet comes back, nor from y to x.
  do {
    x = random_word() % 4;
    y = random_word() % 4;
  } while (((input == 1 || input == 3) && x != 1) || (input == 1 && y < 2) || (input == 3 && y > 2) ||
           (input == 2 && x > 1) || (input == 4 && x < 1));
  bool dram = p.kind != 2 && random_word() % 4 == 0;
  put(header, 0, 2, p.kind);
  put(header, 3, 1, dram && !list);
  put(header, 5, 4, p.kind == 1 ? random_word() % 16 : list);
  put(header, 16, 8, list ? 0 : x);
  put(header, 24, 8, list ? 0 : y);
  p.list = ends_early ? flits - 1 : list;
  if (ends_early) p.outputs = 1;
  else if (!list) p.outputs = 1 << route(x, y, dram);
  else {
    int branch[6] = {0x1F, 0x09, 0x1B, 0x03, 0x0F, 0x1F};
    while (!p.outputs) {
      for (int i = 0; i < 4 * list; i++) {
        uint32_t entry = 0xFFFFFFFF;
        if (i == 0 || random_word() % 3 == 0) {
          x = random_word() % 4, y = random_word() % 4;
          entry = y << 25 | x << 17 | (random_word() & 0x1FFFF);
          p.outputs |= 1 << route(x, y, false) & branch[input];
        }
        p.flits[5 * (1 + i / 4) + i % 4] = entry;
      }
    }
  }
  return p;
}

static Vnoc_router *router;
static Source sources[6];
static Sink sinks[6];
static long now = 0, delivered = 0, lone = -1;

static void fail(const char *text, int port) {
  fprintf(stderr, "cycle %ld, port %d: %s\n", now, port, text);
  violations++;
}

static void step(bool slow) {
  // Sinks give places back.
  uint32_t credits = 0;
  for (int o = 1; o < 6; o++) for (int k = 0; k < 3; k++) {
    if (sinks[o].held[k] && (!slow || random_word() % 8 == 0)) { credits |= 1 << (3 * o + k); sinks[o].held[k]--; }
  }
  router->out_credits = credits;
  router->allowed = slow ? random_word() % 8 : 7;
  memset(&router->in[0], 0, sizeof(uint32_t) * 29);
  for (int i = 0; i < 6; i++) {
    Source &s = sources[i];
    if (s.queue.empty()) continue;
    Packet &p = s.queue.front();
    if (s.at == 0) {
      if (!s.places[p.kind] || (slow && random_word() % 4)) continue;
      s.places[p.kind]--;
      p.sent = now;
      Packet *copy = new Packet(p);
      for (int o = 0; o < 6; o++) if (p.outputs >> o & 1) sinks[o].from[i][p.kind].push_back(copy);
    }
    uint32_t link[5];
    memcpy(link, &p.flits[s.at], 16);
    link[4] = p.flits[s.at + 4] & 0xFFFF;
    bool tail = s.at + 5 == p.flits.size();
    link[4] |= (s.number & 15) << 16 | p.kind << 20 | tail << 22 | 1 << 23;
    for (int w = 0; w < 5; w++) put(&router->in[0], 152 * i + 32 * w, w == 4 ? 24 : 32, link[w]);
    s.at += 5;
    if (tail) { s.queue.pop_front(); s.at = 0; s.number++; }
  }
  router->clock = 0;
  router->eval();
  if (router->wrong_number) fail("a wrong number", 0);
  for (int i = 0; i < 6; i++) for (int k = 0; k < 3; k++) {
    if (router->in_credits >> (3 * i + k) & 1 && ++sources[i].places[k] > (k ? 1 : 2)) fail("too many places", i);
  }
  for (int o = 0; o < 6; o++) {
    Sink &s = sinks[o];
    uint32_t link[5];
    for (int w = 0; w < 5; w++) link[w] = get(&router->out[0], 152 * o + 32 * w, w == 4 ? 24 : 32);
    if (!(link[4] >> 23)) {
      if (s.packet) fail("a packet stopped", o);
      continue;
    }
    int kind = link[4] >> 20 & 3;
    bool tail = link[4] >> 22 & 1;
    if ((link[4] >> 16 & 15) != (uint32_t)(s.number & 15)) fail("the number", o);
    if (!s.packet) {
      s.at = 0;
      for (int i = 0; i < 6; i++) if (!s.from[i][kind].empty()) {
        Packet *p = s.from[i][kind].front();
        if (!memcmp(p->flits.data(), link, 16)) s.packet = p;
      }
      if (!s.packet) { fail("an unknown packet", o); continue; }
      s.from[s.packet->input][kind].pop_front();
      if (lone >= 0 && now != lone) fail("late", o);
    }
    Packet &p = *s.packet;
    if (memcmp(&p.flits[s.at], link, 16) || (p.flits[s.at + 4] & 0xFFFF) != (link[4] & 0xFFFF)) fail("a flit", o);
    s.at += 5;
    if (tail != (s.at == p.flits.size())) fail("the tail", o);
    if (tail) { s.packet = nullptr; s.number++; s.held[kind]++; delivered++; }
  }
  router->clock = 1;
  router->eval();
  now++;
}

int main(int argc, char **argv) {
  Verilated::commandArgs(argc, argv);
  long packets = argc > 1 ? atol(argv[1]) : 20000;
  state = argc > 2 ? atol(argv[2]) : 1;
  router = new Vnoc_router;
  router->x = 1; router->y = 2; router->has_dram = 1; router->reset = 1;
  for (int i = 0; i < 3; i++) { router->clock = 0; router->eval(); router->clock = 1; router->eval(); }
  router->reset = 0;
  // Lone packets: the header is on the next link hop_cycles behind the last, with a list as many more
  // as the list has flits.
  for (int i = 0; i < 300; i++) {
    int input = i % 6;
    sources[input].queue.push_back(random_packet(input));
    lone = now + 2 + sources[input].queue.back().list;
    for (int c = 0; c < 60; c++) step(false);
  }
  lone = -1;
  for (int phase = 0; phase < 2; phase++) {
    for (long n = 0; n < packets; ) {
      for (int i = 0; i < 6; i++) if (sources[i].queue.size() < 3) { sources[i].queue.push_back(random_packet(i)); n++; }
      step(phase);
    }
    for (int c = 0; c < 20000; c++) step(phase);
    for (int i = 0; i < 6; i++) {
      if (!sources[i].queue.empty()) fail("packets did not leave", i);
      for (int k = 0; k < 3; k++) if (sources[i].places[k] != (k ? 1 : 2)) fail("a place was lost", i);
      for (int o = 0; o < 6; o++) for (int k = 0; k < 3; k++) if (!sinks[o].from[i][k].empty()) fail("a packet was lost", o);
    }
  }
  printf("%ld deliveries in %ld cycles, %u violations\n", delivered, now, violations);
  return violations != 0;
}
