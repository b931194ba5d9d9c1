#include "../Kit/kit.h"
#include "swift.h"

static const unsigned char payload[256] = {0x90, 0x88, 0x84, 3, 1, 2};
volatile long loads;

/* DemoApp.TileLoader.mipLevel(Swift.Int) -> Swift.Int */
static INLINE long mipLevel(long key) SWIFT("$s7DemoApp10TileLoaderC8mipLevelyS2iF");
/* generic specialization <Swift.Int> of
   DemoApp.TileLoader.decode<A where A: Swift.BinaryInteger>(A) -> Swift.Int */
static NOINLINE long decode(long key) SWIFT("$s7DemoApp10TileLoaderC6decodeySixSzRzlFSi_Tg5");
/* closure #1 (Swift.Int) -> Swift.Int in DemoApp.TileLoader.install() -> () */
static long install_closure(void *context, long key) SWIFT("$s7DemoApp10TileLoaderC7installyyFS2icfU_");
/* closure #1 in closure #1 */
static INLINE long install_closure_inner(long key) SWIFT("$s7DemoApp10TileLoaderC7installyyFS2icfU_S2iXEfU_");

static long mipLevel(long key) {
  long level = 0;
  while (key > 1 << level)
    level++;
  return level;
}

static long decode(long key) {
  long level = mipLevel(key);
  return dk_decode(payload + level, 64) + level;
}

static long install_closure_inner(long key) {
  loads++;
  return decode(key) * 2;
}

static long install_closure(void *context, long key) {
  return install_closure_inner(key) + (context != 0);
}

void TileLoader_install(void) {
  dk_set_loader(install_closure, 0);
}
