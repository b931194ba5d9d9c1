// ARC, properties, blocks (nested, passed on), a class method, a category, a direct method.
#import "Root.h"

volatile int g_volume;

int each_track(int count, int (^visit)(int track));

@interface Player : NSObject {
  id _kept;
}
@property (nonatomic, strong) id track;
@property (atomic) int position;
- (int)seek:(int)to;
- (int)mix:(int)a with:(int)b into:(id)target;
+ (instancetype)playerAt:(int)position;
@end

@interface Player (Queue)
- (int)enqueue:(int)count;
@end

static inline int gain(id object, int x) {
  g_volume = x;
  return (int)[object hash] * x;
}

@implementation Player

- (int)seek:(int)to {
  return gain(self, to) + gain(_kept, to + 1);
}

- (int)mix:(int)a with:(int)b into:(id)target {
  int (^level)(int) = ^(int q) {
    return [self seek:q] + b;
  };
  int (^both)(void) = ^{
    int (^scaled)(int) = ^(int w) {
      return level(w) * gain(target, w);
    };
    return scaled(a) + scaled(b);
  };
  _kept = target;
  return both() + level(a);
}

+ (instancetype)playerAt:(int)position {
  Player *player = [Player new];
  player.position = position;
  player.track = player;
  return player;
}

- (void)dealloc {
  g_volume = 0;
}

@end

@implementation Player (Queue)

- (int)enqueue:(int)count {
  int queued = each_track(count, ^(int track) {
    return each_track(track, ^(int part) {
      return gain(self, part) + count;
    }) + gain(self, track);
  });
  return [self mix:count with:queued into:self.track] + 1;
}

@end

__attribute__((objc_direct_members))
@interface Meter : NSObject
- (int)peak:(int)z;
@end

@implementation Meter

- (int)peak:(int)z {
  return gain(self, z) - 1;
}

@end

int objc_entry(int n) {
  Player *player = [Player playerAt:n];
  return [player enqueue:n] + [[Meter new] peak:n];
}
