/* C that carries well-formed Swift 5 names by asm labels, so that Swift names can be tested without a
   Swift compiler. `cargo xtask testdata` rewrites the linkage names to the form swiftc gives them. */
#define SWIFT(mangled) __asm("_" mangled)
#define NOINLINE __attribute__((noinline))
#define INLINE __attribute__((always_inline))

volatile long g_feed;

/* Feed.loadCount(Swift.Int) -> Swift.Int */
NOINLINE long loadCount(long x) SWIFT("$s4Feed9loadCountyS2iF");
/* Feed.Timeline.count.getter : Swift.Int */
static INLINE long count_get(long self) SWIFT("$s4Feed8TimelineC5countSivg");
/* @objc Feed.Timeline.count.getter : Swift.Int */
long count_objc(long self) SWIFT("$s4Feed8TimelineC5countSivgTo");
/* generic specialization <Swift.Int> of Feed.clamped<A where A: Swift.Comparable>(A, A, A) -> A */
static INLINE long clamped_int(long x, long low, long high) SWIFT("$s4Feed7clampedyxx_xxtSLRzlFSi_Tg5");
/* generic specialization <Swift.Double> of Feed.clamped<A where A: Swift.Comparable>(A, A, A) -> A */
NOINLINE double clamped_double(double x, double low, double high) SWIFT("$s4Feed7clampedyxx_xxtSLRzlFSd_Tg5");
/* Feed.Timeline.append(Swift.Int) -> Swift.Int, its @objc thunk, its closures and the closure in one */
NOINLINE long append(long x) SWIFT("$s4Feed8TimelineC6appendyS2iF");
long append_objc(long self, long cmd, long x) SWIFT("$s4Feed8TimelineC6appendyS2iFTo");
static NOINLINE long append_closure1(long x) SWIFT("$s4Feed8TimelineC6appendyS2iFS2iXEfU_");
static NOINLINE long append_closure2(long x) SWIFT("$s4Feed8TimelineC6appendyS2iFS2iXEfU0_");
static INLINE long append_closure1_1(long x) SWIFT("$s4Feed8TimelineC6appendyS2iFS2iXEfU_S2iXEfU_");
/* partial apply forwarder for closure #2 */
long append_partial(long x) SWIFT("$s4Feed8TimelineC6appendyS2iFS2iXEfU0_TA");
/* Feed.Timeline.__deallocating_deinit */
void timeline_deinit(long self) SWIFT("$s4Feed8TimelineCfD");
/* static Feed.Timeline.shared.getter : Feed.Timeline */
long shared_get(void) SWIFT("$s4Feed8TimelineC6sharedACvgZ");
/* Feed.Timeline.refresh() async -> (), and its first resume function */
void refresh(void) SWIFT("$s4Feed8TimelineC7refreshyyYaF");
void refresh_resume(void) SWIFT("$s4Feed8TimelineC7refreshyyYaFTY0_");

long loadCount(long x) {
  return g_feed * x;
}

static long count_get(long self) {
  g_feed = self;
  return loadCount(self + 1);
}

static long clamped_int(long x, long low, long high) {
  g_feed = low;
  return x < low ? low : x > high ? high : x;
}

double clamped_double(double x, double low, double high) {
  return x < low ? low : x > high ? high : x;
}

static long append_closure1_1(long x) {
  return clamped_int(count_get(x), 0, 9) + 2;
}

static long append_closure1(long x) {
  return append_closure1_1(x) * append_closure1_1(x + 1);
}

static long append_closure2(long x) {
  return loadCount(x) - (long)clamped_double((double)x, 0.0, 1.0);
}

long append(long x) {
  long first = append_closure1(x);
  return first + append_closure2(first) + count_get(first);
}

void timeline_deinit(long self) {
  g_feed = clamped_int(self, 1, 2);
}

long shared_get(void) {
  return loadCount(1) + 1;
}

void refresh(void) {
  g_feed = append(g_feed) + 1;
}

void refresh_resume(void) {
  g_feed = append(g_feed) + 2;
}

/* What a Swift compiler makes by itself has line 0 of a file that is no file. */
#line 0 "<compiler-generated>"
long count_objc(long self) { return count_get(self) + 0 * g_feed; }
long append_objc(long self, long cmd, long x) { g_feed = cmd; return append(x) + self; }
long append_partial(long x) { return append_closure2(x) + 1; }
