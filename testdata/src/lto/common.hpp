#pragma once
#include "../inline/grid.h"

int left(int x);
int right(int x);

inline int shared(int x) {
  return row(x) + 1;
}
