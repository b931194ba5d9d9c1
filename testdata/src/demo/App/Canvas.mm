#import "../../objc/Root.h"
#include "../Kit/kit.h"
#include "../Plain/plain.h"
#include "Engine.hpp"

extern "C" void dispatch_async(id queue, void (^block)(void));

@interface DemoCanvas : NSObject {
  engine::Renderer _renderer;
  void *_pending;
  int _fetched;
}
- (int)renderScene:(int)rows scale:(int)scale;
- (void)startPrefetchOn:(id)queue;
@end

@interface DemoCanvas (Drawing)
- (int)drawRow:(int)row scale:(int)scale;
@end

@implementation DemoCanvas

- (int)renderScene:(int)rows scale:(int)scale {
  int drawn = plain_each_row(rows, ^(int row) {
    return [self drawRow:row scale:scale] + 1;
  });
  return drawn * scale;
}

- (void)startPrefetchOn:(id)queue {
  dispatch_async(queue, ^{
    self->_fetched += dk_prefetch(self->_pending);
  });
}

@end

static inline int scaled(int row, int scale) {
  return row * scale;
}

@implementation DemoCanvas (Drawing)

- (int)drawRow:(int)row scale:(int)scale {
  return _renderer.draw_row(scaled(row, scale)) + 1;
}

@end
