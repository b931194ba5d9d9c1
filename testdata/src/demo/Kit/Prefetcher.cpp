#include "../Plain/plain.h"
#include "kit.h"

namespace demokit {

namespace {

struct Backoff {
  int delay = 1;

  int pause() {
    int waited = plain_wait(delay);
    delay = delay < 64 ? delay * 2 : delay;
    return waited;
  }
};

} // namespace

class Prefetcher {
  volatile int pending;
  volatile bool stopped;

  __attribute__((noinline)) int wait_for_work() {
    Backoff backoff;
    int waited = 0;
    while (!pending && !stopped)
      waited += backoff.pause();
    return waited;
  }

public:
  int run() {
    int fetched = 0;
    while (!stopped) {
      wait_for_work();
      fetched += dk_tile_fetch(pending);
      pending = pending - 1;
    }
    return fetched;
  }
};

} // namespace demokit

int dk_prefetch(void *queue) {
  return static_cast<demokit::Prefetcher *>(queue)->run() + 1;
}
