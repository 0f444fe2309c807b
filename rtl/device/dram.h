// SPDX-License-Identifier: Apache-2.0
// The DRAM and its controller at port 5 of a chip's first PE: section 4.7 of the hardware manual.
// Call begin() before the evaluation of a cycle for the flit and the free places of this cycle, and
// end() behind it with the flit that the router has sent and the places that it has signalled.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

struct Link {
  bool valid = false, tail = false;
  int kind = 0, number = 0;
  uint16_t crc = 0;
  uint8_t flit[16] = {};
};

uint16_t crc_of(uint16_t state, const uint8_t *bytes, int n);

class Dram {
public:
  void reset();
  void clear() { pages.clear(); }
  virtual ~Dram() = default;
  virtual uint8_t load(uint32_t address) { return byte(address); }
  virtual void store(uint32_t address, uint8_t value) { byte(address) = value; }
  uint8_t &byte(uint32_t address);                      // of the own memory
  Link begin(long cycle, int &credits);                 // credits for output 5, a bit for each class
  void end(long cycle, const Link &link, int credits);  // credits for input 5
  bool wrong_crc = false, wrong_number = false;         // an error in this cycle
  bool idle() const { return writes.empty() && requests.empty() && sending.empty() && back.empty(); }

private:
  struct Flit { uint8_t bytes[16]; };
  struct Packet { std::vector<Flit> flits; long known; };
  struct Piece { uint32_t address; int bytes; };
  struct Queued { long from; int kind; std::vector<Flit> flits; };
  struct Request {
    uint32_t source, source_stride, row_bytes, rows, address, stride;
    int x, y, home_x, home_y, flag;
    bool dram;
    std::vector<Flit> list;
    // the walk
    uint32_t row = 0, done = 0;
    long known;
  };
  bool arrived(long cycle);             // false: of no use
  void refresh_until(long cycle);
  void choose(long cycle);
  Packet next_packet(std::vector<Piece> &pieces, bool &last);
  long access(long cycle, long known, const std::vector<Piece> &pieces, long &first);

  std::unordered_map<uint32_t, std::vector<uint8_t>> pages;
  std::vector<Flit> arriving;
  uint16_t crc = 0;
  // The packet that arrives: first, its header is next; dropped; broken, behind a wrong flit; again, it has
  // come again.
  bool closed = false, first = true, dropped = false, broken = false, again = false;
  int expected = 0;
  std::deque<Packet> writes;
  bool read_turn = false;
  std::deque<Request> requests;   // in order of arrival; the first is served
  long access_end = 0, refresh = 0;
  struct Bank { int64_t row = -1; long end = 0; } banks[8];
  int data_room = 2, acknowledgement_room = 1, number = 0;
  std::deque<Queued> sending;
  size_t sent = 0;
  struct Place { long cycle; int kind; };
  std::vector<Place> back;      // places of output 5, signalled in a cycle
};
