/* The path holds a space and letters beyond ASCII. */
#include "../inline/level/mip.h"

__attribute__((noinline)) int wide(int x) {
  return pyramid(x) * 5;
}

int wide_entry(int x) {
  return wide(x) + mip(x);
}
