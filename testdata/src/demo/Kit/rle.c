#include "../Plain/plain.h"
#include "kit.h"

static inline int is_nested(unsigned char head) {
  return head & 0x80;
}

static inline int run_len(const unsigned char *run, int left) {
  int len = run[0] & 0x7f;
  return len < left ? len : left;
}

static inline int expand_run(const unsigned char *run, int len, dk_mismatch mismatch, void *context) {
  if (is_nested(run[0]))
    return dk_rle_expand(run + 1, len - 1, mismatch, context) + 1;
  return plain_checksum(run, len, mismatch, context) - 1;
}

__attribute__((noinline)) int dk_rle_expand(const unsigned char *bytes, int count, dk_mismatch mismatch,
                                            void *context) {
  int written = 0;
  for (int at = 0; at < count;) {
    int len = run_len(bytes + at, count - at);
    written += expand_run(bytes + at, len, mismatch, context);
    at += len + 1;
  }
  return written;
}
