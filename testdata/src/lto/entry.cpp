// Three units that link-time optimisation inlines into one another.
extern "C" {
#include "../inline/grid.h"
}
#include "common.hpp"

volatile int g_trace;

extern "C" __attribute__((noinline)) int sample(int x) {
  return g_trace * x;
}

int main(int argc, char **) {
  return left(argc) + right(argc) + shared(argc);
}
