#pragma once

namespace demokit {

struct Tile {
  int key;
  int level;
};

// A direct-mapped cache: a miss loads and replaces.
template <class T, int N> class TileCache {
  T slots[N];

public:
  template <class Load> int get_or_load(int key, Load load) {
    T &slot = slots[key & (N - 1)];
    if (slot.key != key) {
      slot.level = load(key);
      slot.key = key;
    }
    return slot.level;
  }
};

// The last N entries; `slots` is memory that the owner has to give first.
template <class T, int N> struct Ring {
  T *slots;
  unsigned next;

  __attribute__((always_inline)) void push(const T &entry) {
    T *slot = slots + (next & (N - 1));
    slot->code = entry.code; // the demo dies here: nobody gave the ring its memory
    slot->sum = entry.sum;
    next++;
  }
};

} // namespace demokit
