#import "../../objc/Root.h"

int UIApplicationMain(int argc, char *argv[], id principal, id delegate);

static inline int run_app(int argc, char *argv[]) {
  int status = UIApplicationMain(argc, argv, 0, 0);
  return status + 1;
}

int main(int argc, char *argv[]) {
  @autoreleasepool {
    return run_app(argc, argv);
  }
}
