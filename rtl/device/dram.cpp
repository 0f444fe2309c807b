// SPDX-License-Identifier: Apache-2.0
#include "dram.h"
#include <algorithm>
#include <cstring>

static const int Burst = 64, PortBytes = 16, RowBytes = 2048, Banks = 8, Open = 10, Latency = 60,
                 RefreshInterval = 1170, RefreshCycles = 54, PacketFlits = 32;

uint16_t crc_of(uint16_t state, const uint8_t *bytes, int n) {
  for (int i = 0; i < n; i++) {
    state ^= bytes[i] << 8;
    for (int j = 0; j < 8; j++) state = state & 0x8000 ? state << 1 ^ 0x1021 : state << 1;
  }
  return state;
}

static uint32_t field(const uint8_t *flit, int from, int bits) {
  uint32_t value = 0;
  for (int i = 0; i < bits; i++) value |= uint32_t(flit[(from + i) / 8] >> (from + i) % 8 & 1) << i;
  return value;
}
static void set(uint8_t *flit, int from, int bits, uint32_t value) {
  for (int i = 0; i < bits; i++) flit[(from + i) / 8] |= (value >> i & 1) << (from + i) % 8;
}

uint8_t &Dram::byte(uint32_t address) {
  auto &page = pages[address >> 12];
  if (page.empty()) page.resize(4096);
  return page[address & 4095];
}

void Dram::reset() {
  arriving.clear();
  writes.clear();
  sending.clear();
  back.clear();
  requests.clear();
  closed = wrong_crc = wrong_number = read_turn = dropped = broken = again = false;
  first = true;
  access_end = number = expected = 0;
  refresh = RefreshInterval;
  sent = 0;
  for (auto &bank : banks) bank = Bank();
  data_room = 2;
  acknowledgement_room = 1;
}

// Every refresh up to a cycle in which no access is under way.
void Dram::refresh_until(long cycle) {
  for (; refresh <= cycle; refresh += RefreshInterval) {
    long end = std::max(refresh, access_end) + RefreshCycles;
    for (auto &bank : banks) { bank.row = -1; bank.end = end; }
  }
}

// Takes up an access: begin of the first burst and end of the last. A row that is closed opens from the cycle
// on in which the access is known, or the end of the last burst of its bank. A signal takes a cycle.
long Dram::access(long cycle, long known, const std::vector<Piece> &pieces, long &first) {
  refresh_until(cycle);
  long end = cycle;
  first = -1;
  for (auto &piece : pieces) {
    for (uint32_t at = piece.address / Burst * Burst; at < piece.address + piece.bytes; at += Burst) {
      Bank &bank = banks[at / RowBytes % Banks];
      int64_t row = at / RowBytes / Banks;
      long start = end;
      if (bank.row != row) start = std::max(start, std::max(known, bank.end) + Open);
      bank.row = row;
      if (first < 0) first = start;
      end = bank.end = start + Burst / PortBytes;
    }
  }
  if (first >= 0) return end;
  first = cycle;
  return cycle + 1;
}

// The next packet of the request: whole rows if a row fits, else a piece.
Dram::Packet Dram::next_packet(std::vector<Piece> &pieces, bool &last) {
  Request &r = requests.front();
  Packet packet;
  packet.known = r.known;
  int lists = r.list.size();
  uint32_t most = PacketFlits - 1 - lists, row_flits = (r.row_bytes + 15) / 16, rows = 0, bytes = 0;
  uint32_t moved = r.row * r.stride + r.done, from = r.source + r.row * r.source_stride + r.done;
  last = true;
  if (r.rows && r.row_bytes) {
    if (row_flits <= most) {
      rows = std::min(most / row_flits, r.rows - r.row);
      bytes = r.row_bytes;
      r.row += rows;
    } else {
      rows = 1;
      bytes = std::min(most * 16, r.row_bytes - r.done);
      r.done += bytes;
      if (r.done == r.row_bytes) { r.done = 0; r.row++; }
    }
    last = r.row == r.rows;
  }
  Flit header = {};
  set(header.bytes, 2, 1, last);
  set(header.bytes, 3, 1, r.dram);
  set(header.bytes, 4, 1, r.dram && last);
  set(header.bytes, 5, 4, lists);
  set(header.bytes, 9, 7, r.flag);
  set(header.bytes, 16, 8, lists ? 0 : r.x);
  set(header.bytes, 24, 8, lists ? 0 : r.y);
  set(header.bytes, 32, 8, r.home_x);
  set(header.bytes, 40, 8, r.home_y);
  set(header.bytes, 48, 9, bytes);
  set(header.bytes, 57, 5, rows);
  set(header.bytes, 64, 32, lists ? 0 : r.address + moved);
  set(header.bytes, 96, 32, r.stride);
  packet.flits.push_back(header);
  for (auto &flit : r.list) {
    Flit out = {};
    for (int i = 0; i < 4; i++) {
      uint32_t entry = field(flit.bytes, 32 * i, 32);
      if (entry >> 17 != 0x7FFF) entry = (entry & ~0x1FFFFu) | ((entry + moved) & 0x1FFFF);
      if ((entry >> 17 & 0xFF) == 0xFF) entry = 0xFFFFFFFF;
      set(out.bytes, 32 * i, 32, entry);
    }
    packet.flits.push_back(out);
  }
  for (uint32_t row = 0; row < rows; row++) {
    uint32_t at = from + row * r.source_stride;
    pieces.push_back({at, int(bytes)});
    for (uint32_t i = 0; i < bytes; i += 16) {
      Flit flit = {};
      for (uint32_t j = i; j < std::min(bytes, i + 16); j++) flit.bytes[j - i] = load(at + j);
      packet.flits.push_back(flit);
    }
  }
  return packet;
}

// A whole packet is there; cycle is the first in which it may be used.
bool Dram::arrived(long cycle) {
  const uint8_t *header = arriving[0].bytes;
  if (field(header, 0, 2) == 0) {
    Packet packet;
    packet.known = cycle;
    packet.flits = arriving;
    writes.push_back(packet);
  } else if (field(header, 0, 2) == 1 && arriving.size() > 1) {
    const uint8_t *second = arriving[1].bytes;
    Request request;
    request.source = field(header, 64, 32);
    request.source_stride = field(header, 96, 32);
    request.flag = field(header, 9, 7);
    request.home_x = field(header, 32, 8);
    request.home_y = field(header, 40, 8);
    request.row_bytes = field(second, 0, 16);
    request.rows = field(second, 16, 16);
    request.x = field(second, 32, 8);
    request.y = field(second, 40, 8);
    request.dram = field(second, 48, 1);
    request.address = field(second, 64, 32);
    request.stride = field(second, 96, 32);
    request.list.assign(arriving.begin() + 2, arriving.end());
    request.known = cycle + Latency;
    requests.push_back(request);
  } else return false;
  return true;
}

// An access in a cycle in which none is under way.
void Dram::choose(long cycle) {
  if (cycle < access_end) return;
  bool read = !requests.empty() && cycle >= requests.front().known && data_room > 0;
  bool write = !writes.empty() && cycle >= writes.front().known &&
               (!field(writes.front().flits[0].bytes, 4, 1) || acknowledgement_room > 0);
  if (!read && !write) return;
  if (read && (!write || read_turn)) {
    std::vector<Piece> pieces;
    bool last;
    Packet packet = next_packet(pieces, last);
    long first, n = packet.flits.size();
    access_end = access(cycle, packet.known, pieces, first);
    sending.push_back({first + std::max(access_end - first - n, 0l) + 1, 0, packet.flits});
    data_room--;
    read_turn = false;
    if (last) { requests.pop_front(); back.push_back({access_end - 1, 1}); }
    return;
  }
  Packet packet = writes.front();
  writes.pop_front();
  const uint8_t *header = packet.flits[0].bytes;
  std::vector<Piece> pieces;
  uint32_t rows = field(header, 57, 5), bytes = field(header, 48, 9), address = field(header, 64, 32);
  size_t at = 1;
  for (uint32_t row = 0; row < rows; row++) {
    uint32_t to = address + row * field(header, 96, 32);
    pieces.push_back({to, int(bytes)});
    for (uint32_t i = 0; i < bytes; i++) {
      if (at + i / 16 < packet.flits.size()) store(to + i, packet.flits[at + i / 16].bytes[i % 16]);
    }
    at += (bytes + 15) / 16;
  }
  long first;
  access_end = access(cycle, packet.known, pieces, first);
  back.push_back({access_end - 1, 0});
  read_turn = true;
  if (field(header, 4, 1)) {
    Flit flit = {};
    set(flit.bytes, 0, 2, 2);
    set(flit.bytes, 2, 1, 1);
    set(flit.bytes, 9, 7, 0x7F);
    set(flit.bytes, 16, 8, field(header, 32, 8));
    set(flit.bytes, 24, 8, field(header, 40, 8));
    sending.push_back({access_end + 1, 2, {flit}});
    acknowledgement_room--;
  }
}

Link Dram::begin(long cycle, int &credits) {
  choose(cycle);
  credits = 0;
  for (size_t i = 0; i < back.size(); ) {
    if (back[i].cycle > cycle || credits >> back[i].kind & 1) { i++; continue; }
    credits |= 1 << back[i].kind;
    back.erase(back.begin() + i);
  }
  Link link;
  if (sending.empty() || cycle < sending.front().from) return link;
  Queued &packet = sending.front();
  link.valid = true;
  link.kind = packet.kind;
  link.number = number & 15;
  crc = 0xFFFF;
  for (size_t i = 0; i <= sent; i++) crc = crc_of(crc, packet.flits[i].bytes, 16);
  link.crc = crc;
  memcpy(link.flit, packet.flits[sent].bytes, 16);
  link.tail = ++sent == packet.flits.size();
  if (link.tail) {
    sending.pop_front();
    sent = 0;
    number++;
  }
  return link;
}

void Dram::end(long cycle, const Link &link, int credits) {
  data_room += credits & 1;
  acknowledgement_room += credits >> 2 & 1;
  wrong_crc = wrong_number = false;
  if (!link.valid) return;
  if (first) {
    arriving.clear();
    again = ((link.number + 1) & 15) == expected;
    wrong_number = link.number != expected && !closed;
    if (wrong_number) closed = true;
    broken = false;
    dropped = again || (closed && link.kind == 0);
    if (!again) expected = (link.number + 1) & 15;
  }
  first = link.tail;
  bool used = false;
  if (!dropped && !broken) {
    Flit flit;
    memcpy(flit.bytes, link.flit, 16);
    arriving.push_back(flit);
    uint16_t state = 0xFFFF;
    for (auto &f : arriving) state = crc_of(state, f.bytes, 16);
    if (state != link.crc) {
      // The flits before it are written.
      closed = broken = wrong_crc = true;
      arriving.pop_back();
      if (!arriving.empty() && field(arriving[0].bytes, 0, 2) == 0) {
        size_t at = 1;
        const uint8_t *header = arriving[0].bytes;
        uint32_t rows = field(header, 57, 5), bytes = field(header, 48, 9);
        for (uint32_t row = 0; row < rows; row++, at += (bytes + 15) / 16) {
          for (uint32_t i = 0; i < bytes && at + i / 16 < arriving.size(); i++)
            store(field(header, 64, 32) + row * field(header, 96, 32) + i, arriving[at + i / 16].bytes[i % 16]);
        }
      }
    } else if (link.tail) used = arrived(cycle + 1);
  }
  // A packet that is thrown away gives its place back in the cycle behind its last flit.
  if (link.tail && !used && !again) back.push_back({cycle + 1, link.kind});
}
