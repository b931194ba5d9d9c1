extern "C" {
#include "../inline/grid.h"
}
#include "common.hpp"

static int masked(int x) {
  return row(x) ^ 5;
}

int left(int x) {
  int r = masked(x);
  return r + right(r);
}
