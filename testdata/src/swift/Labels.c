/* Swift names by asm labels, left as clang writes them: linkage names that keep Mach-O's `_`. */
#define SWIFT(mangled) __asm("_" mangled)

extern volatile long g_feed;

/* Feed.Post.score.getter : Swift.Int, inlined; Feed.Post.rank(Swift.Int) -> Swift.Int */
static inline __attribute__((always_inline)) long score(long self) SWIFT("$s4Feed4PostV5scoreSivg");
long rank(long x) SWIFT("$s4Feed4PostV4rankyS2iF");

static inline long score(long self) {
  g_feed = self;
  return self * 3;
}

long rank(long x) {
  return score(x) + score(x + 1);
}
