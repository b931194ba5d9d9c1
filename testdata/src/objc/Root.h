#pragma once

// The part of NSObject that we call. Our own declaration, so that no SDK is needed.
__attribute__((objc_root_class))
@interface NSObject {
  Class isa;
}
+ (instancetype)new;
- (unsigned long)hash;
- (void)dealloc;
@end
