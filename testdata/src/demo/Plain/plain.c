/* DemoPlain: compiled without -g, so only its symbol table can name these functions. */
#include "plain.h"

int usleep(unsigned microseconds);

static __attribute__((noinline)) int draw_rows(int first, int rows, int (^draw)(int row)) {
  int drawn = 0;
  for (int row = first; row < first + rows; row++)
    drawn += draw(row);
  return drawn;
}

int plain_each_row(int rows, int (^draw)(int row)) {
  int half = rows / 2;
  return draw_rows(0, half, draw) + draw_rows(half, rows - half, draw);
}

static __attribute__((noinline)) int fold_bytes(const unsigned char *bytes, int count,
                                                int (*mismatch)(void *, unsigned), void *context) {
  unsigned sum = 0;
  for (int i = 0; i < count; i++)
    sum = sum * 31 + bytes[i];
  return sum % 251 ? mismatch(context, sum) + 1 : 0;
}

int plain_checksum(const unsigned char *bytes, int count, int (*mismatch)(void *, unsigned), void *context) {
  if (count < 1)
    return 0;
  return fold_bytes(bytes, count, mismatch, context) * 2;
}

int plain_wait(int milliseconds) {
  int slept = 0;
  while (slept < milliseconds)
    slept += usleep(1000) + 1;
  return slept;
}
